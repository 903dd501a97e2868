"""The page that runs Slate, in Chromium without a window: `make test-web`.

Each test is a script of tools/web/tests/, which browser.mjs gives the page.
"""

import functools
import http.server
import shutil
import subprocess
import threading

import pytest

from conftest import ROOT, product
from tools.run import v86, watchdog

PAGE = ROOT / "tools/web/tests/browser.mjs"

pytestmark = [pytest.mark.long, pytest.mark.plain]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    """The address of build/web, on a server without any settings."""
    folder = product("web/live/index.html", "web").parents[1]
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0),
            functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def in_browser(url, test):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is missing: tools/setup web")
    done = watchdog.run([v86.NODE, PAGE, v86.ENV, chromium, url, test],
                        encoding="utf-8", stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


TESTS = sorted({path.stem for path in PAGE.parent.glob("*.mjs")}
               - {"browser", "disk", "report"})


@pytest.mark.parametrize("test", TESTS)
def test_page(site, test):
    in_browser(f"{site}/{'slab' if test == 'book' else 'live/index'}.html",
               test)


@pytest.mark.parametrize("page, test", [
    ("slate", "link"), ("slate", "time"), ("live/index", "disk")])
def test_what_opens_from_disk(page, test):
    in_browser(product(f"web/{page}.html", "web").as_uri(), test)
