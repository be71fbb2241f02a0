"""Errors for the user: one line that names the bad value and the fix."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something the user gave cannot be used. The message is one line: what is wrong, and what would be right."""

    def _render_traceback_(self) -> list[str]:
        """The line alone, without a traceback, in notebooks."""
        return [f"{type(self).__name__}: {self}"]


#: Ends the messages of commands that stop before their work is done.
KEPT = "finished results are kept; run the same command again to continue"


class AnswerError(ValueError):
    """A method answered with something that is not an answer: wrong shape, wrong type, NaN."""


class WorkerError(RuntimeError):
    """A worker process ended before its work was done."""


class Undefined(Exception):  # noqa: N818 - a status of a score, not a failure
    """Raised by a protocol where a score has no value for a case; becomes a row with status `undefined`."""


class Excluded(Exception):  # noqa: N818
    """Raised by a protocol where a case does not count by the protocol's own rules; status `excluded`."""


def shortened(message: str, longest: int = 500) -> str:
    """A message as one line; a long one is cut in the middle: its beginning names the fault, its end the fix.

    >>> shortened("no file\\n'" + 1000 * "a" + "': give another", longest=40)
    "no file 'aaaaaaaaaaa … aa': give another"
    """
    text = " ".join(message.split())
    tail = longest // 2 - 3
    return text if len(text) <= longest else f"{text[: longest - tail - 3]} … {text[-tail:]}"


def count(n: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "case"), count(1200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def tell(line: str) -> None:
    """Print a warning for the user on stderr."""
    print(shortened(f"diorama: {line}"), file=sys.stderr, flush=True)


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint for a misspelt name: the nearest known names, those that contain it, or the first twenty.

    >>> did_you_mean("retinex_grey", ["retinex_gray", "weiss"])
    "did you mean 'retinex_gray'?"
    >>> did_you_mean("xyz", ["b", "a"])
    'there are: a, b'
    >>> did_you_mean("seed", ["split_seed", "train"])
    "did you mean 'split_seed'?"
    """
    import difflib

    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if not near and len(name) > 2:
        near = [n for n in sorted(known) if name in n][:2]
    if near:
        return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    if not known:
        return "there are none"
    listed = sorted(known)
    return "there are: " + ", ".join(listed[:20]) + (", …" if len(listed) > 20 else "")


def which_layer(name: str, known: list[str], outer: list[str] | None = None) -> str:
    """A hint for a misspelt layer: the nearest ones, then the outermost, or the first twenty.

    >>> which_layer("layer9", ["layer1", "layer2"])
    "did you mean 'layer2' or 'layer1'? It has: layer1, layer2"
    """
    hint = did_you_mean(name, known)
    return hint if hint.startswith("there are") else f"{hint} It has: {', '.join(outer or known[:20])}"


#: Which extra brings a package that the base install lacks.
_EXTRAS = {"numba": "render", "embreex": "render", "trimesh": "render", "torch": "torch", "captum": "torch"}
_EXTRAS |= {"skimage": "lime", "zennit": "lrp", "torchvision": "zoos", "timm": "zoos", "sklearn": "represent"}
_EXTRAS |= {"pandas": "notebook", "matplotlib": "notebook", "pyarrow": "parquet", "OpenEXR": "exr"}
_EXTRAS |= dict.fromkeys(("starlette", "uvicorn", "websockets", "anywidget"), "lab")


def missing_package(error: ImportError) -> str:
    """The message of a failed import, with the extra to install.

    >>> missing_package(ModuleNotFoundError("No module named 'torch'", name="torch"))
    "No module named 'torch': pip install 'diorama[torch]'"
    """
    package = (error.name or "").partition(".")[0]
    return f"{error}" + (f": pip install 'diorama[{_EXTRAS[package]}]'" if package in _EXTRAS else "")


@contextmanager
def importing() -> Iterator[None]:
    """Turn a failed import inside into an InputError that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(missing_package(error)) from error
