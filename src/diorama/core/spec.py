"""Component specs: `name`, `name(k=v, …)`, `package.module:Name`, `./file.py:Name`; literals only, no `eval`."""

import ast
import math
import re
from dataclasses import dataclass, field
from typing import Any

from diorama.core.errors import InputError

_NAME = re.compile(r"[\w./~-]+\.py:[A-Za-z_]\w*|[A-Za-z_][\w.]*:[A-Za-z_]\w*|[A-Za-z_][\w./:-]*")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.DOTALL)
#: Characters that cannot be in the name of a file or module to the left of a colon in a spec.
_ENDS = re.compile(r"[\s(),=:'\"\[\]{}]")
_DEEPEST = 100
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Spec:
    """A component's name and the parameters that were given for it."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return self.name + "(" + ", ".join(f"{k}={_value_text(v)}" for k, v in self.params.items()) + ")"


def parse(text: str) -> Spec:
    """Read a spec. A value is a Python literal; a bare word or path counts as a string.

    >>> parse("mit_intrinsic(root=../data/mit, objects=('box', 'cup1'))").params
    {'root': '../data/mit', 'objects': ('box', 'cup1')}
    >>> str(parse("./mine.py:Mine( k = 0.5 )"))
    './mine.py:Mine(k=0.5)'
    """
    _check_text(text)
    text = text.strip()
    name, paren, rest = text.partition("(")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise InputError(
            f"cannot read component {_cut(text)!r}: write name, name(k=v, …), package.module:Name or ./file.py:Name"
        )
    if not paren:
        return Spec(name)
    if not rest.endswith(")"):
        raise InputError(f"cannot read component {_cut(text)!r}: the closing parenthesis is missing")
    params: dict[str, Any] = {}
    for part in _split(rest[:-1], text):
        match = _KEY.fullmatch(part)
        if not match:
            raise InputError(f"cannot read {_cut(part.strip())!r} in {_cut(text)!r}: parameters are written name=value")
        if match[1] in params:
            raise InputError(f"parameter {_cut(match[1])!r} is given twice in {_cut(text)!r}")
        params[match[1]] = value(match[2], text)
    return Spec(name, params)


def named(text: str) -> tuple[str, str]:
    """Split `NAME=SPEC` into the user's name, empty if there is none, and the spec.

    >>> named("IG (ours)=./expl.py:ig"), named("lime(samples=200)")
    (('IG (ours)', './expl.py:ig'), ('', 'lime(samples=200)'))
    """
    name, equals, rest = text.partition("=")
    own = bool(equals and name.strip()) and all(name.count(a) == name.count(b) for b, a in _CLOSING.items())
    return (name.strip(), rest.strip()) if own else ("", text)


def value(word: str, context: str = "") -> Any:
    """A literal, or the word itself when it is a bare word or path.

    >>> value("3"), value("None"), value("data/mit"), value("'a b'"), value("[apple, 'a b']")
    (3, None, 'data/mit', 'a b', ['apple', 'a b'])
    """
    try:
        return _check_value(ast.literal_eval(word), word)
    except InputError:
        raise
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    if word[:1] in ("[", "(") and word[-1:] in ("]", ")"):  # a list of bare words: [apple, pear]
        words = [value(part.strip(), context) for part in _split(word[1:-1], context or word)]
        return words if word[0] == "[" else tuple(words)
    if not word or word[0] in "'\"[{(" or word[-1] in "'\"":
        where = f" in {_cut(context)!r}" if context else ""
        raise InputError(f"cannot read the value {_cut(word)!r}{where}: quotes or brackets do not match")
    return word


def _check_value(found: Any, word: str) -> Any:
    """Refuse values other than finite numbers, text, True, False, None, and lists, tuples or dicts of them."""
    if isinstance(found, list | tuple):
        return type(found)(_check_value(v, word) for v in found)
    if isinstance(found, dict):
        return {_check_value(k, word): _check_value(v, word) for k, v in found.items()}
    if isinstance(found, float) and not math.isfinite(found):
        raise InputError(f"cannot read the value {_cut(word)!r}: it is not a finite number")
    if isinstance(found, str):
        _check_text(found)
    elif not isinstance(found, int | float | bool | None):
        raise InputError(f"cannot read the value {_cut(word)!r}: give numbers, words, lists, tuples or dicts of them")
    return found


def _cut(text: str) -> str:
    """The beginning of a text, for messages of one line."""
    return text if len(text) <= 80 else text[:80] + "…"


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"cannot read {_cut(text)!r}: it is not UTF-8; rename what it names") from error


def _split(text: str, whole: str) -> list[str]:
    """Split at commas outside quotes and brackets; empty text gives no parts."""
    parts, start, stack, quote, escaped = [], 0, [], "", False
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote and not escaped else quote
            escaped = c == "\\" and not escaped
        elif c in "'\"":
            quote = c
        elif c in "([{":
            stack.append(c)
            if len(stack) > _DEEPEST:
                raise InputError(f"cannot read component {_cut(whole)!r}: brackets are nested over {_DEEPEST} deep")
        elif c in _CLOSING:
            if not stack or stack.pop() != _CLOSING[c]:
                raise InputError(f"cannot read component {_cut(whole)!r}: unbalanced {c!r}")
        elif c == "," and not stack:
            parts.append(text[start:i])
            start = i + 1
    if stack or quote:
        raise InputError(f"cannot read component {_cut(whole)!r}: {quote or stack[-1]!r} is never closed")
    parts.append(text[start:])
    if not parts[-1].strip():  # a trailing comma, or no parameter at all
        parts.pop()
    return parts


def _value_text(v: Any) -> str:
    return v if isinstance(v, str) and re.fullmatch(r"[A-Za-z_./~][\w./~-]*", v) and value(v) == v else repr(v)


def changes(text: str) -> dict[str, Any]:
    """NAME=VALUE, … as changes for `do`; the word none is None.

    >>> changes("beak=none, eye=2")
    {'beak': None, 'eye': 2}
    """
    return {name: None if value == "none" else value for name, value in parse(f"do({text})").params.items()}


def outside(text: str) -> list[str]:
    """The files and modules that a spec names, anywhere in it: `./mine.py:Mine`, `package.module:Name`.

    >>> outside("pair(encoder=./a.py:encode, decoder=my.module:decode)"), outside("timm:resnet18"), outside("x: 1")
    (['./a.py', 'my.module'], ['timm'], [])
    """
    before = text.split(":")
    names = [_ENDS.split(part)[-1] for part in before[:-1]]
    named = zip(names, before[1:], strict=True)
    return [name for name, rest in named if name[:1].strip("0123456789") and rest[:1].isidentifier()]


def respelt(text: str, now: dict[str, str]) -> str:
    """A spec with other paths for some of its files: `now` maps old paths to new ones.

    >>> respelt("pair(encoder=/a.py:encode, decoder=./b/a.py:decode)", {"/a.py": "/x/a.py"})
    'pair(encoder=/x/a.py:encode, decoder=./b/a.py:decode)'
    """
    before = text.split(":")
    cut = [len(part) - len(_ENDS.split(part)[-1]) for part in before[:-1]]
    parts = [part[:n] + now.get(part[n:], part[n:]) for part, n in zip(before[:-1], cut, strict=True)]
    return ":".join([*parts, before[-1]])
