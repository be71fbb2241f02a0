"""How large the house is, in figures: `scripts/counts`. Size is a result, not a rule.

Only the standard library is used, so that it runs without an environment.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_CODE = (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
#: Where a private name is given: a function, a class, a variable, an attribute.
_DEFINED = r"(?:def|class) (_[A-Za-z]\w*)|^\s*(?:self\.)?(_[A-Za-z]\w*)(?:: [^=\n]+)? = "
#: Names with an underscore that are what Python and IPython ask for.
_FOREIGN = {"_exit", "_render_traceback_", "_repr_html_", "_repr_png_"}


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank lines, comments or docstrings (docs/decisions/0005)."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        text = token.type == tokenize.STRING and token.line.strip().startswith(('"', "'", 'r"'))
        if token.type in _CODE and not text:
            held.add(token.start[0])
    return len(held)


def modules(room: str) -> list[Path]:
    """The Python files of a folder of the repository."""
    return sorted((REPOSITORY / room).rglob("*.py"))


def private_names(path: Path) -> Iterator[tuple[int, str]]:
    """The private names of ours that a test uses, with their lines: imported, asked for, or patched."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("diorama", "studies"):
            yield from ((node.lineno, alias.name) for alias in node.names if _private(alias.name))
        elif isinstance(node, ast.Attribute) and _private(node.attr) and node.attr in _ours():
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else ""
            if isinstance(name, str) and _private(name) and name in _ours():
                yield node.lineno, name


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _FOREIGN


def _ours(known: set[str] = set()) -> set[str]:  # noqa: B006 - filled once
    if not known:
        for path in (*modules("src"), *modules("studies")):
            found = re.findall(_DEFINED, path.read_text(encoding="utf-8"), re.MULTILINE)
            known.update(name for pair in found for name in pair if name)
    return known


def figures() -> Iterator[str]:
    """A line for each figure."""
    for room in ("src", "studies", "tests", "benchmarks"):
        files = modules(room)
        yield f"{sum(map(code_lines, files)):6} lines of code in {len(files)} files of {room}"
    ours = [*modules("src"), *modules("studies")]
    longest = max(ours, key=lambda path: len(path.read_text(encoding="utf-8").splitlines()))
    yield f"{len(longest.read_text(encoding='utf-8').splitlines()):6} lines in the longest module, {longest.name}"
    yield f"{sum(_private(path.stem) for path in ours):6} underscored modules"
    yield f"{sum(path.stem in ('common', 'utils', 'helpers', 'misc') for path in ours):6} modules named after nothing"
    private = [(path, *found) for path in modules("tests") for found in private_names(path)]
    yield f"{len(private):6} private names in tests"
    yield from (f"         {path.relative_to(REPOSITORY)}:{line} {name}" for path, line, name in private)
    slow = sum(path.read_text(encoding="utf-8").count("mark.slow") for path in modules("tests"))
    yield f"{slow:6} marks of slow tests"


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"scripts/counts takes no argument, not {sys.argv[1]!r}")
    print("\n".join(figures()))
