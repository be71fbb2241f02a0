"""The package as a whole: what importing costs, who may import whom, that everything public is there and documented."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import diorama
from tests.conftest import REPOSITORY
from tests.counts import code_lines, modules

SOURCE = REPOSITORY / "src" / "diorama"


def test_import_is_quick_and_light():
    code = (
        "import sys, time; t = time.process_time(); import diorama; s = time.process_time() - t;"
        "print(s, [m for m in ('torch', 'numba', 'numpy', 'scipy', 'cv2') if m in sys.modules])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    ]
    assert min(float(run.split()[0]) for run in runs) < 0.2
    assert all(run.split(maxsplit=1)[1].strip() == "[]" for run in runs)


def test_every_public_name_resolves():
    for name in diorama.__all__:
        assert getattr(diorama, name) is not None
    with pytest.raises(AttributeError):
        _ = diorama.no_such_name


#: What each room, and each module beside the rooms, may import of ours beside itself; `core.errors` is that module alone.
#: `api`, `cli` and `__main__` see everything and are not listed.
RULES = {
    "metrics": "",
    "solvers": "",
    "render": "",
    "io": "core.errors core.rows core.scene",
    "core": "adapt io metrics",
    "adapt": "core io",
    "worlds": "core io metrics render",
    "models": "adapt core io render solvers",
    "methods": "adapt core io metrics solvers",
    "protocols": "adapt core io metrics",
    "training": "adapt core data io methods metrics models progress render solvers worlds",
    "capture": "core worlds",
    "data": "adapt core io",
    "lab": "adapt core data io methods metrics protocols report streams worlds",
    "launch": "adapt.neighbours core io",
    "report": "core io metrics",
    "testing": "adapt core protocols",
    "describe": "core layouts testing",
    "gates": "core",
    "reading": "core progress report",
    "layouts": "core io metrics",
    "progress": "core",
    "results": "core io report",
    "streams": "",
}


@cache
def tree(path: Path) -> ast.Module:
    """The syntax of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """Our modules that a file imports, at its head, in its functions and for its annotations, without `diorama.`."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write imports in full"
            head = [node.module or ""] if node.module != "diorama" else []
            found |= {*head, *(f"{node.module}.{a.name}" for a in node.names if node.module == "diorama")}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    assert not any(name.split(".")[0] in ("studies", "tests", "benchmarks") for name in found), path
    return {name.removeprefix("diorama.") for name in found if name.startswith("diorama.")} - {"__version__"}


def files_of(room: str) -> list[Path]:
    return [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").is_file() else sorted((SOURCE / room).rglob("*.py"))


@pytest.mark.parametrize("room", RULES)
def test_dependency_rule(room):
    assert files_of(room)
    allowed = {room, *RULES[room].split()}
    for path in files_of(room):
        for name in imported(path):
            parts = name.split(".")
            assert {parts[0], ".".join(parts[:2])} & allowed, f"{path} imports {name}"


def test_the_architecture_page_has_the_same_rules_and_names_functions_that_exist():
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    said = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            said[cells[0].strip("`")] = set(cells[2].replace("`", "").replace("—", "").split())
    assert said == {room: set(allowed.split()) for room, allowed in RULES.items()}
    source = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    for step in (line for line in page.splitlines() if re.match(r"\| \d ", line)):
        for name in re.findall(r"`([\w.]+)`", step.split("|")[3]):
            assert f"def {name.rpartition('.')[2]}(" in source, name
            assert f"class {name.partition('.')[0]}(" in source or "." not in name, name
    for path in re.findall(r"`(\w+(?:\.\w+)+)`", page.split("## The way")[1]):
        module = SOURCE.joinpath(*path.split(".")[:-1]).with_suffix(".py")
        if module.is_file():
            assert re.search(rf"(def|class) {path.rpartition('.')[2]}\b", module.read_text(encoding="utf-8")), path


def test_every_room_has_a_rule():
    rooms = {p.stem for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()}
    assert rooms - {"__init__", "__main__", "api", "cli"} == set(RULES)


def test_helpers_have_plain_names_and_what_is_listed_is_a_component():
    """A helper with a class of its own file's name would be listed: give one of the two another name."""
    from diorama.core.catalogue import KINDS, entries, find
    from diorama.core.contracts import Contract

    assert not [path for path in SOURCE.rglob("_*.py") if not path.name.startswith("__")]
    for kind in KINDS:
        for name, entry in entries(kind).items():
            if entry.path.suffix == ".py":
                assert issubclass(find(kind, name).target, Contract), entry.path


def test_no_two_components_of_a_kind_share_a_name():
    from diorama.core.catalogue import KINDS, bundled

    for kind in KINDS:
        names = [entry.name for entry in bundled(kind)]
        assert len(names) == len(set(names)), kind


def test_no_module_has_over_500_lines(record_property):
    """Size is a result, not a rule: it is printed with -s and goes into the test report."""
    files = {room: modules(room) for room in ("src", "studies")}
    for room, paths in files.items():
        record_property(f"code_lines_{room}", count := sum(map(code_lines, paths)))
        print(f"\n{room}: {count} lines of code in {len(paths)} files")
    for path in (*files["src"], *files["studies"]):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path


def test_there_is_one_broad_except_and_no_evaluation_or_pickle():
    broad = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
            ):
                broad.append(path.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.Import | ast.ImportFrom):
                taken_apart = ast.unparse(node) == "import pickletools"  # it disassembles and runs nothing
                assert taken_apart or "pickle" not in ast.unparse(node), path
    assert broad == ["guard.py"]


def test_every_public_function_is_documented():
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(tree(path)), path
        for node in _defined(tree(path)):
            assert node.name.startswith("_") or ast.get_docstring(node), f"{path}: {node.name}"


def _defined(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The classes and functions of a module, without those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        if isinstance(child, ast.stmt) and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _defined(child)


def test_scripts_are_executable_and_the_data_folder_is_named_in_tests_only():
    for name in ("setup", "demo", "test", "check", "bench", "reproduce"):
        assert (REPOSITORY / "scripts" / name).stat().st_mode & 0o111
    for path in SOURCE.rglob("*.py"):
        assert "shared" + "/data" not in path.read_text(), path
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text().splitlines()) <= 60


@pytest.mark.slow
def test_the_wheel_contains_everything_that_runs(tmp_path):
    import zipfile

    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(tmp_path), str(REPOSITORY)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip("the build back end cannot be fetched here")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(p.relative_to(SOURCE.parent)) for p in SOURCE.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }
    assert wanted <= names
