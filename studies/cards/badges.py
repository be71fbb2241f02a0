"""The badges of README.md: small SVG files drawn here from the repository, without any server. scripts/badges

Version, Python and licence are read from pyproject.toml. The number of test functions is counted in the syntax trees of the
test files and rounded down to one digit, so that it does not change every day. `scripts/badges --check` lists the files that
are out of date; a test calls it.
"""

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "badges"
#: Pixels of a letter at 11 pixels of DejaVu Sans, a little more than its mean, and of the space beside a word.
LETTER, SIDE, HEIGHT = 6.9, 7, 20
LEFT, RIGHT = "#3d444d", "#0b6b8a"


def facts() -> dict[str, tuple[str, str]]:
    """The label and the value of every badge, by file name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "version": ("version", project["version"]),
        "python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "licence": ("licence", project["license"]),
        "tests": ("tests", f"over {rounded(tests())}"),
    }


def tests() -> int:
    """The number of test functions; a parametrised one counts once."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in nodes)


def rounded(n: int) -> str:
    """A number rounded down to its first digit.

    >>> rounded(1234), rounded(87)
    ('1,000', '80')
    """
    step = 10 ** (len(str(n)) - 1)
    return f"{n // step * step:,}"


def badge(name: str, value: str) -> str:
    """A badge as SVG: a word on a dark ground, its value on a lighter one."""
    widths = [round(LETTER * len(text) + 2 * SIDE) for text in (name, value)]
    whole, middles = sum(widths), [widths[0] / 2, widths[0] + widths[1] / 2]
    label, flat = escape(f"{name}: {value}"), widths[0] - 3
    texts = "".join(
        f'<text x="{x:.1f}" y="14">{escape(text)}</text>' for x, text in zip(middles, (name, value), strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<rect width="{whole}" height="{HEIGHT}" rx="3" fill="{RIGHT}"/>'
        f'<path d="M3 0h{flat}v{HEIGHT}h-{flat}a3 3 0 0 1-3-3v-{HEIGHT - 6}a3 3 0 0 1 3-3z" fill="{LEFT}"/>'
        f'<g fill="#fff" text-anchor="middle" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11">{texts}</g>'
        "</svg>\n"
    )


def stale() -> list[str]:
    """The badge files that are out of date, missing or no longer needed."""
    wanted = {f"{file}.svg": badge(*fact) for file, fact in facts().items()}
    present = {path.name: path.read_text(encoding="utf-8") for path in OUT.glob("*.svg")}
    return sorted(name for name in {*wanted, *present} if wanted.get(name) != present.get(name))


def write() -> None:
    """Draw all badges."""
    OUT.mkdir(parents=True, exist_ok=True)
    for file, fact in facts().items():
        (OUT / f"{file}.svg").write_text(badge(*fact), encoding="utf-8")


def main(words: list[str]) -> int:
    """Write the badges, or with --check list those that are out of date."""
    if words == ["--check"]:
        names = stale()
        for name in names:
            print(f"docs/badges/{name} is out of date: run scripts/badges")
        return bool(names)
    if words:
        print(f"badges: unknown argument '{' '.join(words)}'; there is --check", file=sys.stderr)
        return 2
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
