"""Keys of outsiders' components follow what these hold: weights, arrays, files, closures; and helpers of their own."""

from pathlib import Path

import numpy as np
import pytest

from diorama.core.catalogue import build

HEAD = "import numpy as np, torch\nfrom pathlib import Path\nfrom diorama import Layers\nHERE = Path(__file__).parent\n"
ONE = "    def decompose(self, frames): return Layers(frames[0].linear() * self.w.mean(), frames[0].linear())\n"
INIT = "class C:\n    def __init__(self): "
#: Ways of holding weights that are in a file and not in the source, with the kind of the component.
WAYS = {
    "an array of the object": ("method", INIT + "self.w = np.load(HERE / 'w.npy')\n" + ONE),
    "nested": ("method", INIT + "self.w, self.d = np.ones(1), {'a': [np.load(HERE / 'w.npy')]}\n" + ONE),
    "the path of a file": ("method", INIT + "self.w, self.p = np.ones(1), HERE / 'w.npy'\n" + ONE),
    "an array of the class": ("method", "class C:\n    w = np.load(HERE / 'w.npy')\n" + ONE),
    "slots": (
        "method",
        INIT.replace(":", ":\n    __slots__ = ('w',)", 1) + "self.w = np.load(HERE / 'w.npy')\n" + ONE,
    ),
    "read when asked": ("method", "class C:\n    def decompose(self, frames): return np.load('{0}/w.npy')\n"),
    "a global array": ("model", "W = np.load(HERE / 'w.npy')\ndef C(images): return images.mean((1, 2)) @ W\n"),
    "a closure": (
        "model",
        "def make():\n    w = np.load(HERE / 'w.npy')\n"
        "    def C(images): return images.mean((1, 2)) @ w\n    return C\nC = make()\n",
    ),
    "a global of a helper": ("model", "import helper\ndef C(images): return images.mean((1, 2)) @ helper.W\n"),
    "the class of docs/start.md": (
        "model",
        "class C:\n    classes, size = 2, 8\n    def __init__(self):\n"
        "        self.module = torch.nn.Linear(3, 2, bias=False)\n"
        "        self.module.weight.data = torch.from_numpy(np.load(HERE / 'w.npy').T.astype('f4').copy())\n"
        "    def logits(self, images): return images.mean((1, 2)) @ self.module.weight.detach().numpy().T\n",
    ),
    "a torch module": (
        "model",
        "class C(torch.nn.Module):\n    size = 8\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = torch.nn.Parameter(torch.from_numpy(np.load(HERE / 'w.npy').astype('f4')))\n"
        "    def forward(self, x): return x.mean((2, 3)) @ self.w\n",
    ),
}


def digest(folder: Path, kind: str) -> str:
    return build(kind, f"{folder}/mine.py:C").digest  # type: ignore[arg-type]


@pytest.mark.parametrize("way", WAYS)
def test_other_weights_give_another_key_and_the_same_weights_the_same(tmp_path, way):
    kind, source = WAYS[way]
    (tmp_path / "helper.py").write_text(HEAD + "W = np.load(HERE / 'w.npy')\n")
    (tmp_path / "mine.py").write_text(HEAD + source.replace("{0}", str(tmp_path)))
    np.save(tmp_path / "w.npy", np.ones((3, 2)))
    first = digest(tmp_path, kind)
    assert digest(tmp_path, kind) == first
    np.save(tmp_path / "w.npy", np.full((3, 2), 2.0))
    (tmp_path / "helper.py").touch()  # a helper is read again when it is newer, not when what it reads is
    assert digest(tmp_path, kind) != first
    np.save(tmp_path / "w.npy", np.ones((3, 2)))
    (tmp_path / "helper.py").touch()
    assert digest(tmp_path, kind) == first


def test_what_cannot_be_known_is_not_reused_and_said_in_one_line(tmp_path, monkeypatch, capsys):
    source = "import threading\n" + INIT + "self.held = threading.Lock()\n    def decompose(self, frames): ...\n"
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.delenv("DIORAMA_SESSION", raising=False)
    first = digest(tmp_path, "method")
    assert digest(tmp_path, "method") == first  # within a session: the processes that share a run agree
    said = capsys.readouterr().err.splitlines()
    assert "holds lock" in said[0] and "fingerprint()" in said[0] and len(said[0]) <= 500
    monkeypatch.delenv("DIORAMA_SESSION")
    assert digest(tmp_path, "method") != first
    (tmp_path / "mine.py").write_text(source + "    def fingerprint(self): return 'seven'\n")
    known = digest(tmp_path, "method")
    monkeypatch.delenv("DIORAMA_SESSION", raising=False)
    assert digest(tmp_path, "method") == known


@pytest.mark.parametrize("told", ["7", "[1]", "1 / 0", "b'x'"])
def test_an_odd_fingerprint_is_one_line(tmp_path, told):
    from diorama.core.errors import InputError

    source = f"class C:\n    def decompose(self, frames): ...\n    def fingerprint(self): return {told}\n"
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(InputError, match="fingerprint\\(\\) should return a text"):
        digest(tmp_path, "method")


def test_the_same_component_in_another_place_has_the_same_key(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        np.save(tmp_path / place / "w.npy", np.ones((3, 2)))
        (tmp_path / place / "mine.py").write_text(HEAD + WAYS["an array of the object"][1])
    assert digest(tmp_path / "a", "method") == digest(tmp_path / "b", "method")


def test_two_files_with_helpers_of_one_name_get_their_own(tmp_path):
    for place, number in (("a", 1), ("b", 2)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "helper.py").write_text(f"NUMBER = {number}\n")
        (tmp_path / place / "later.py").write_text(f"NUMBER = {number * 10}\n")
        (tmp_path / place / "mine.py").write_text(
            "import helper\nclass C:\n    def decompose(self, frames):\n"
            "        from later import NUMBER\n        return helper.NUMBER, NUMBER\n"
        )
    first, second = (build("method", f"{tmp_path}/{place}/mine.py:C").object for place in ("a", "b"))
    assert first.decompose([]) == (1, 10) and second.decompose([]) == (2, 20) and first.decompose([]) == (1, 10)


def test_an_edited_helper_is_read_again(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import helper\nclass C:\n    def decompose(self, frames): return helper.NUMBER\n"
    )
    for number in (1, 22, 333):
        (tmp_path / "helper.py").write_text(f"NUMBER = {number}\n")
        assert build("method", f"{tmp_path}/mine.py:C").object.decompose([]) == number
