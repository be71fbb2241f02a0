"""What scripts/setup installs so that torchvision can be imported before diorama, beside a torch it was not built for."""

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow  # it imports torchvision in three processes

#: Without the user's site-packages hooks: only what is added here helps.
PLAIN = "import sys; sys.meta_path = [f for f in sys.meta_path if type(f).__name__ != 'TorchvisionFinder']; "


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PLAIN + code], capture_output=True, text=True, check=False)


def test_torchvision_can_be_imported_first(tmp_path):
    subprocess.run([REPOSITORY / "scripts" / "torchvision_shim", tmp_path], check=True)
    if run("import torchvision").returncode == 0:
        pytest.skip("torchvision needs no help here")
    helped = run(
        f"import site; site.addsitedir({str(tmp_path)!r}); import torchvision.models as m, timm; print(m.resnet18)"
    )
    assert helped.returncode == 0, helped.stderr
    assert "torchvision_shim" in (REPOSITORY / "scripts" / "setup").read_text()
    light = run(
        f"import site; site.addsitedir({str(tmp_path)!r}); print('torch' in sys.modules, 'diorama' in sys.modules)"
    )
    assert light.stdout.split() == ["False", "False"]
