"""What the fuzzers feed: words from grammars with hostile ones among them, and damaged copies of good bytes."""

import struct
import zlib

from hypothesis import strategies as st

#: Values that somebody, some day, writes.
HOSTILE = [
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "-1",
    "0",
    "1",
    "2",
    "-0.0",
    "0.5",
    "1e-320",
    "1e308",
    "10**9",
    "1000000000",
    "1000000000000000000",
    "None",
    "True",
    "False",
    "none",
    "''",
    "[]",
    "()",
    "{}",
    "{[]:1}",
    "{1:2}",
    "(1,)",
    "(1,2)",
    "[None]",
    "1j",
    "...",
    "b'x'",
    "{1}",
    "'\\ud800'",
    "'\\x00'",
    "'../..'",
    "/dev/zero",
    "/dev/null",
    ".",
    "..",
    "/",
    "~",
    "~nobody",
    "²",
    "٣",
    "1_0",
    "0x10",
    "1e5",
    "'a'",
    "a-b",
    "a.b",
    "a/b",
    "*x",
    "**x",
    "lambda:1",
    "__import__('os')",
    "f''",
    "((((",
    "))))",
    "[1,",
    "]2",
    "'unclosed",
]
_LONG = ("9" * 5000, "x" * 3000, "(" * 200 + ")" * 200, "[" * 3000 + "]" * 3000, "1," * 2000)
words = st.one_of(
    st.sampled_from(HOSTILE),
    st.sampled_from(_LONG),
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(repr),
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def specs(known: st.SearchStrategy[str] = names, values: st.SearchStrategy[str] = words) -> st.SearchStrategy[str]:
    """Component specs, some of them torn."""
    pairs = st.lists(st.tuples(names, values).map("=".join), max_size=3).map(", ".join)
    whole = st.tuples(known, pairs).map(lambda parts: f"{parts[0]}({parts[1]})")
    torn = st.tuples(whole, st.integers(0, 40), st.text(max_size=3)).map(lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :])
    return st.one_of(known, whole, torn, words)


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """Copies of a file with something wrong: bits, cuts, repeats, foreign pieces, tokens; PNG checksums repaired."""
    size = len(data)
    places = st.integers(0, max(size - 1, 0))
    changes = st.one_of(
        places.map(lambda at: data[:at]),
        st.tuples(places, st.binary(min_size=1, max_size=8)).map(
            lambda t: data[: t[0]] + t[1] + data[t[0] + len(t[1]) :]
        ),
        st.tuples(places, st.binary(min_size=1, max_size=64)).map(lambda t: data[: t[0]] + t[1] + data[t[0] :]),
        st.tuples(places, st.integers(1, 200)).map(lambda t: data[: t[0]] + data[t[0] + t[1] :]),
        st.tuples(places, places).map(lambda t: data[: max(t)] + data[min(t) :]),
        st.binary(max_size=40),
        st.tuples(places, st.sampled_from(_TOKENS)).map(lambda t: _token(data, *t)),
    )
    return st.one_of(changes, changes.map(_checked)) if data.startswith(b"\x89PNG") else changes


_TOKENS = [
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"[]",
    b"{}",
    b'""',
    b"1000000000000",
    b'"\xff"',
    b'"../../x"',
    b"true",
    b"\0",
    b"9" * 400,
]
_BREAKS = b',:[]{}"= \n'


def _token(data: bytes, at: int, token: bytes) -> bytes:
    """The word at a place of a text replaced by another."""
    start, end = at, at
    while start > 0 and data[start - 1] not in _BREAKS:
        start -= 1
    while end < len(data) and data[end] not in _BREAKS:
        end += 1
    return data[:start] + token + data[end:]


def _checked(data: bytes) -> bytes:
    """A PNG whose chunks have right checksums, so that what is wrong inside reaches the decoder."""
    at, out = 8, data[:8]
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + length]
        out += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return out + data[at:]
