"""Intrinsic Images in the Wild: photos with human judgements of which of two points is darker (recorded)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.files import read_json, read_text
from diorama.io.photos import ENDINGS
from diorama.worlds.recorded.reading import Recorded, colour, existing, natural, read_picture


@dataclass(frozen=True)
class Iiw(Recorded):
    """A folder with `<id>.json` beside `<id>.png` (or .jpg), as released; photos are sRGB.

    root   folder with the photos and their judgements
    split  all, or by id in numeric order: test is every fifth photo (the 1,046 of Narihira & Maire), train the others; no
           primary source confirms that rule
    ids    text file with one id per line, which replaces `split`

    `truth["factors"]["judgements"]` is the file's content: `intrinsic_points` and `intrinsic_comparisons`, which
    `metrics.whdr.judgements` reads (null weights, verdicts and points that are not opaque are left out there).
    """

    cite = ("bell2014",)
    located = ("root", "ids")
    truth: ClassVar[tuple[str, ...]] = ("factors",)

    root: str
    split: Literal["all", "train", "test"] = "all"
    ids: str | None = None

    def __post_init__(self) -> None:
        existing("iiw", self.root, "54.json, 54.png, …")
        if not self.names:
            raise InputError(f"iiw: no photo of split {self.split!r} with its .json is in {self.root}")

    @cached_property
    def names(self) -> list[str]:
        """The ids of the split."""
        known = sorted((path.stem for path in self.folder.glob("*.json")), key=natural)
        if self.ids is not None:
            return _listed(Path(self.ids).expanduser(), known)
        return [n for i, n in enumerate(known) if self.split == "all" or (i % 5 == 0) == (self.split == "test")]

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th photo, by id."""
        return self.names[index], Scene("iiw", {"photo": self.names[index]})

    def fingerprint(self) -> str:
        """The digest of the photos and judgements of the split."""
        files = [p for name in self.names for p in (self.folder / f"{name}.json", self._photo(name))]
        return files_digest(files, self.folder)

    def _photo(self, name: str) -> Path:
        paths = [path for end in ENDINGS if (path := self.folder / f"{name}{end}").is_file()]
        if not paths:
            raise InputError(f"iiw: {name}.json has no photo {name}.png or {name}.jpg beside it")
        return paths[0]

    def read(self, scene: Scene) -> Frame:
        """The photo with its judgements."""
        name = scene.params["photo"]
        judgements = read_judgements(self.folder / f"{name}.json")
        return Frame(scene, colour(read_picture(self._photo(name))), "srgb", {"factors": {"judgements": judgements}})


def read_judgements(path: Path) -> dict[str, Any]:
    """The points and comparisons of a file of IIW or SAW."""
    try:
        content = read_json(path)
        return {name: list(content[name]) for name in ("intrinsic_points", "intrinsic_comparisons")}
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is not a file of judgements: it has no lists of points and comparisons") from error


def _listed(path: Path, known: list[str]) -> list[str]:
    wanted = read_text(path).split()
    missing = [name for name in wanted if name not in set(known)]
    if missing:
        raise InputError(f"iiw: photo {missing[0]!r} of {path.name} is not in the folder ({len(missing)} missing)")
    return wanted
