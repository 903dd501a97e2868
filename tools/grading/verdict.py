"""Verdicts of the labs' tests: records on the debug port, signed with a key
that the grader makes for one test in one run
(tools/workshop/labs/runner.c)."""

import secrets
import struct

MASK = (1 << 64) - 1


def _rotate(x, n):
    return (x << n | x >> (64 - n)) & MASK


def _rounds(v0, v1, v2, v3, n):
    for _ in range(n):
        v0, v2 = (v0 + v1) & MASK, (v2 + v3) & MASK
        v1, v3 = _rotate(v1, 13) ^ v0, _rotate(v3, 16) ^ v2
        v0 = _rotate(v0, 32)
        v2, v0 = (v2 + v1) & MASK, (v0 + v3) & MASK
        v1, v3 = _rotate(v1, 17) ^ v2, _rotate(v3, 21) ^ v0
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


def siphash(key, text):
    """SipHash-2-4 of bytes. `key` is 16 bytes, its halves little-endian."""
    k0, k1 = struct.unpack("<QQ", key)
    v = (k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
         k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573)
    end = len(text) & 0xff
    padded = text + bytes(-(len(text) + 1) % 8) + bytes([end])
    for (word,) in struct.iter_unpack("<Q", padded):
        v0, v1, v2, v3 = _rounds(*v[:3], v[3] ^ word, 2)
        v = v0 ^ word, v1, v2, v3
    v0, v1, v2, v3 = _rounds(v[0], v[1], v[2] ^ 0xff, v[3], 4)
    return v0 ^ v1 ^ v2 ^ v3


def new_key():
    """32 digits for gradekey=. Only decimal ones: the kernel takes as many
    instructions to read any of them, so a run does not depend on its key."""
    return "".join(secrets.choice("0123456789") for _ in range(32))


def sign(key, test, result, leaks):
    """The signature of a verdict, as in the record."""
    words = [int(key[i:i + 8], 16) for i in range(0, 32, 8)]
    halves = words[0] << 32 | words[1], words[2] << 32 | words[3]
    text = f"{test} {result} {leaks}".encode()
    return f"{siphash(struct.pack('<QQ', *halves), text):016x}"


def find(events, key, test):
    """(result, leaks) of the verdict of `test` that is signed with `key`, and
    how many verdicts there are that are not: (None, n) if all. Two that
    contradict each other are none."""
    right, forged = set(), 0
    for event in events:
        if event["event"] != "verdict":
            continue
        said = tuple(event.get(name) for name in ("test", "result", "leaks"))
        if said[0] == test and said[1] in ("pass", "fail") and \
                type(said[2]) is int and \
                event.get("mac") == sign(key, *said):
            right.add(said[1:])
        else:
            forged += 1
    return right.pop() if len(right) == 1 else None, forged
