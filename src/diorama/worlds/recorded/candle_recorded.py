"""CANDLE as published: numbered images with their metadata, 4,050 of three scenes or more (recorded).

A folder with `<index>.png` and `<index>.json`, in the older form (everything under the index as an outer key) or the later
one. `do(scene, color="red")` is the recorded image with the same other factors: the object's place and the camera differ,
because place and jitter were drawn for every image.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from diorama.core.capabilities import Levelled
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.files import read_json
from diorama.worlds.candle.factors import NAMES, known
from diorama.worlds.recorded.reading import Recorded, colour, existing, read_picture


@dataclass(frozen=True, slots=True)
class CandleRecorded(Recorded, Levelled):
    """The images of one folder. `truth["boxes"]` has the published loose box as x0, y0, x1, y1 from the top left.

    root  folder with `<index>.png` and `<index>.json`

    The published boxes were made before the camera's jitter (a few pixels off) and are not cut off at the image's edge; a
    data set written by `diorama render candle --layout candle` adds the tight box as `object`.
    """

    root: str

    cite = ("reddy2022",)
    truth: ClassVar[tuple[str, ...]] = ("factors", "boxes")
    factors: ClassVar[dict[str, str]] = dict.fromkeys(NAMES, "a value for which an image was recorded")

    def __post_init__(self) -> None:
        existing("candle_recorded", self.root, "0.png and 0.json")
        if not _numbers(self.root):
            raise InputError(
                f"candle_recorded: {self.root!r} has no <index>.json with its <index>.png; give their folder"
            )

    @property
    def names(self) -> tuple[int, ...]:
        """The numbers of the images."""
        return _numbers(self.root)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th image of the folder, by its number."""
        if not 0 <= index < len(self):
            raise InputError(f"candle_recorded: image {index!r}: the folder has 0 to {len(self) - 1}")
        number = self.names[index]
        return f"{number:05d}", Scene("candle_recorded", {"index": number, **_record(self.root, number)["factors"]})

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The recorded values of every factor, in the published order."""
        return {name: _levels(self.root, name) for name in NAMES}

    def records(self) -> list[dict[str, Any]]:
        """The factors of every image, in order, for the queries of `diorama.data`."""
        return [dict(_record(self.root, number)["factors"]) for number in self.names]

    def do(self, scene: Scene, /, **changes: Any) -> Scene:
        """The recorded image with these values and the scene's other ones."""
        for name in changes:
            if name not in NAMES:
                raise InputError(f"candle_recorded cannot change {name!r}; {did_you_mean(name, list(NAMES))}")
        wanted = {name: changes.get(name, scene.params[name]) for name in NAMES}
        number = _by_factors(self.root).get(tuple(wanted.values()))
        if number is None:
            raise InputError(f"candle_recorded: no image has {', '.join(f'{k}={v!r}' for k, v in wanted.items())}")
        return Scene(scene.world, {"index": number, **wanted})

    def fingerprint(self) -> str:
        """The digest of images and metadata, so that keys depend on the data and not on its path."""
        files = (self.folder / f"{i}.{kind}" for i in self.names for kind in ("png", "json"))
        return files_digest(files, self.folder)

    def read(self, scene: Scene) -> Frame:
        """The image with its factors and boxes."""
        number = scene.params["index"]
        image = colour(read_picture(self.folder / f"{number}.png"))
        record = _record(self.root, number)
        boxes = {name: _from_top(box, image.shape[0]) for name, box in record["boxes"].items() if box is not None}
        return Frame(scene, image, "srgb", {"factors": dict(record["factors"]), "boxes": boxes})


@lru_cache(maxsize=8)
def _numbers(root: str) -> tuple[int, ...]:
    folder = Path(root).expanduser()
    images = {path.stem for path in folder.glob("*.png")}
    stems = (p.stem for p in folder.glob("*.json") if p.stem.isdecimal() and p.stem in images)
    return tuple(sorted(int(stem) for stem in stems if stem == str(int(stem))))


@lru_cache(maxsize=65536)
def _record(root: str, number: int) -> dict[str, Any]:
    path = Path(root).expanduser() / f"{number}.json"
    try:
        return parse(read_json(path))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not CANDLE metadata ({type(error).__name__}: {error}); fetch it again") from error


@lru_cache(maxsize=64)
def _levels(root: str, name: str) -> tuple[Any, ...]:
    recorded = {_record(root, number)["factors"][name] for number in _numbers(root)}
    published = [value for value in known(name) if value in recorded]
    return (*published, *sorted(recorded - set(published)))


@lru_cache(maxsize=4)
def _by_factors(root: str) -> dict[tuple[Any, ...], int]:
    return {tuple(_record(root, number)["factors"].values()): number for number in reversed(_numbers(root))}


def parse(metadata: dict[str, Any]) -> dict[str, Any]:
    """Factors and boxes ([[xmin, ymin], [xmax, ymax]] from the bottom left) of a metadata file, of either form.

    >>> cube = {"object_type": "Cube", "color": "red", "size": 2, "rotation": 15, "bounds": [[1, 2], [3, 4]]}
    >>> found = parse({"7": {"scene": "indoor", "lights": "left", "objects": {"Cube_0": cube}}})
    >>> found["factors"]["object"], found["factors"]["size"], found["boxes"]["loose"]
    ('cube', 2.0, [[1, 2], [3, 4]])
    """
    if "objects" not in metadata:
        (metadata,) = metadata.values()
    (thing,) = metadata["objects"].values()
    factors = {
        "scene": metadata["scene"].lower().replace("_", " "),
        "light": metadata["lights"].lower(),
        "object": thing["object_type"].lower(),
        "color": thing["color"].lower(),
        "size": float(thing["size"]),
        "rotation": int(thing["rotation"]),
    }
    boxes = {"loose": thing["bounds"], "object": thing.get("visible_bounds")}
    return {"factors": factors, "boxes": boxes}


def _from_top(box: list[list[int]], height: int) -> list[int]:
    (x0, low), (x1, high) = box
    return [x0, height - high, x1, height - low]
