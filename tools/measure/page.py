"""A self-contained HTML page with pictures, in light or dark colours as the
browser is set.
"""

from html import escape

from tools.measure import svg

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Slate: @TITLE@</title>
<style>
:root { color-scheme: light dark; --ink: #1d232b; --dim: #5d6673;
  --paper: #ffffff; --rule: #d9dde3; --code: #f3f4f6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --dim: #9aa4b2;
  --paper: #15181d; --rule: #333a44; --code: #20252c; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue',
  Arial, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 48px 24px 80px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 21px; margin: 56px 0 6px; }
p { margin: 0 0 14px; max-width: 46em; }
p.note { color: var(--dim); font-size: 14px; }
p.doubt { color: #c62828; }
code { background: var(--code); border-radius: 4px; padding: 1px 5px;
  font: 0.88em ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
figure { margin: 20px 0 0; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 720px; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  font-size: 14px; margin-top: 18px; }
td, th { padding: 3px 0 3px 26px; text-align: right; font-weight: inherit; }
th { color: var(--dim); border-bottom: 1px solid var(--rule); }
td:first-child, th:first-child { padding-left: 0; text-align: left; }
@STYLE@
</style>
</head>
<body><main>
<h1>@TITLE@</h1>
@BODY@
</main></body>
</html>
"""


def html(title, body):
    """The page; `body` are lines of HTML."""
    return PAGE.replace("@STYLE@", svg.style()) \
        .replace("@TITLE@", escape(title)) \
        .replace("@BODY@", "\n".join(body))
