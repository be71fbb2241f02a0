"""The contracts, on one page: every member that a world, model, method or protocol may have, and who calls it.

Required members are abstract; optional members have a neutral default body here. First-party components derive from these
classes; an outsider's object is made one of them by `diorama.adapt` when it is built, or refused by name. After that no
code checks with `hasattr` whether an object has a member: an object of the class has all of its members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Answer, Layers
from diorama.core.cases import Case, Panel, Score
from diorama.core.errors import InputError, Undefined
from diorama.core.folds import two_fold
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng

if TYPE_CHECKING:
    from diorama.core.bench import Bench
    from diorama.core.rows import Row
    from diorama.core.summary import Condensed

Direction = Literal["lower", "higher"]
#: The ends of a metric's range; None where it has none.
Bounds = tuple[float | None, float | None]
#: Defaults where the plan gives no number: cases of a world without a fixed length, and draws of many frames each.
USUAL_CASES, USUAL_DRAWS = 32, 5


# All components ---------------------------------------------------------------------------------------------------------


class Contract(ABC):  # noqa: B024 - its subclasses have the abstract members
    """What every component may declare."""

    #: Keys of `core/references.bib`: the papers behind it. Used by manifests and `show`.
    cite: ClassVar[tuple[str, ...]] = ()
    #: Parameters that are paths: keys hash the content there (`fingerprint`), not the path.
    located: ClassVar[tuple[str, ...]] = ()
    #: The new names of parameters by their old ones: the error message for an old name gives the new one.
    renamed: ClassVar[Mapping[str, str]] = {}
    #: Parameters for `diorama check`: few samples, enough for its checks and too few for results.
    quick: ClassVar[Mapping[str, Any]] = {}
    #: A command that shows it at work, with {} in the place of its spec. Used by `show`.
    example: ClassVar[str] = ""

    @property
    def note(self) -> str:
        """Called by run: a remark that is written beside every value computed with the component."""
        return ""

    def fingerprint(self) -> str | None:
        """Called by keys: the digest of data or weights that are not among the parameters, or None."""
        return None


# Worlds -----------------------------------------------------------------------------------------------------------------


class World(Contract):
    """Stages scenes. `factors`, `truth`, `sample`, `do` and `render` must be written."""

    #: Whether the truth is exact: image = R·S + C is then checked.
    staged: bool = True
    #: Whether frames take so long to render that the bench keeps them on disk between runs.
    slow: bool = False
    #: How messages describe this kind of world: "mig needs …, which birds is not". Used by plan.
    in_words: ClassVar[str] = "a world"
    #: Used by `render`: folder layouts of other projects, each with a function that takes a `Writing`, or `module:function`.
    layouts: ClassVar[Mapping[str, str | Callable[..., Any]]] = {}
    example = "diorama render {} -n 16 -o pictures"

    @property
    @abstractmethod
    def factors(self) -> dict[str, str]:
        """What `do` can change, each with its values in words."""

    @property
    @abstractmethod
    def truth(self) -> tuple[str, ...]:
        """The truth that every frame carries, from `frame.TRUTH`."""

    @property
    def size(self) -> int | None:
        """The side of its square images in pixels; None where sizes differ."""
        return None

    @property
    def length(self) -> int | None:
        """How many scenes there are; None: as many as are asked for."""
        return None

    @property
    def contents(self) -> frozenset[str]:
        """Called by plan: digests of the photos it shows, so that none is shown to a model that was fitted on it."""
        return frozenset()

    @property
    def as_published(self) -> bool:
        """Whether the values that papers report for a world of this name may be shown beside those measured on this one."""
        return True

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Scene:
        """A scene drawn with `rng` and nothing else."""

    @abstractmethod
    def do(self, *scene: Any, **changes: Any) -> Scene:
        """`do(scene, NAME=VALUE, …)`: the scene with only the named things changed."""

    @abstractmethod
    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames: a pure function of the scenes."""

    def sized(self, side: int) -> str:
        """Called by plan: the parameter that a hint proposes for images of another size."""
        return f"size={side}"

    def scene_at(self, seed: int, index: int) -> tuple[str, Scene]:
        """Called by protocols: the index-th scene of a seed, with a readable name."""
        return f"{seed}-{index:05d}", self.sample(rng(seed, "scene", index))


# Models -----------------------------------------------------------------------------------------------------------------


class Model(Contract):
    """Images to logits, in evaluation mode, normalisation inside. Methods never change it."""

    name: str = ""
    note: str = ""
    #: How many classes it tells apart.
    classes: int
    #: The side of the images it takes; None: any.
    size: int | None = None
    #: The names that `features` takes.
    layers: tuple[str, ...] = ()
    #: The layer that Grad-CAM looks at, where there is one.
    cam_layer: str | None = None
    #: The torch module behind it: sRGB (n, 3, h, w) in, logits out. None: methods that need gradients are skipped.
    module: Any = None
    #: For a live network: the copy of each of its parts, by the `id` of the user's own part (the memo of `copy.deepcopy`).
    copies: Mapping[int, Any] = {}
    #: Its faster version with folded batch norms (`adapt.folding.Folded`), if any; for passes that need only logits and
    #: gradients.
    folded: Any = None
    #: How many of its logits belong to each factor, for a model that predicts factors instead of classes.
    heads: tuple[int, ...] | None = None
    #: Digests of the photos it was fitted on, and the parameter with which a world leaves these photos out.
    learnt: frozenset[str] = frozenset()
    leave_out: str = ""
    example = "diorama run -w birds -M {} -m grad_cam -p single_deletion"

    @property
    def differentiable(self) -> bool:
        """Called by plan: whether methods that need gradients can be asked; a model may know without loading its module."""
        return self.module is not None

    @abstractmethod
    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, h, w, 3) float32 sRGB in [0, 1] → (n, classes)."""

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The output of one of `layers` (n, channels, h, w)."""
        raise InputError(f"{self.name} has no layer {layer!r}")


# Methods ----------------------------------------------------------------------------------------------------------------


class Method(Contract):
    """What all methods may declare."""

    #: The protocols that may judge it.
    track: str = ""
    #: Further frames it wants to see: `do(scene, **view)` for each, after the frame itself.
    views: Sequence[dict[str, Any]] = ()
    #: Whether it needs the model's torch module.
    gradients: bool = False
    #: Whether its answer depends on the class it is asked about.
    targeted: bool = True
    #: Whether it is shown the truth, because it adds a known error to it; its rows say so.
    given_truth: bool = False

    @property
    def grid(self) -> Sequence[dict[str, Any]]:
        """Parameter values to choose from, a dictionary per point: a case is judged at the point best on the other cases."""
        return ()

    def for_track(self, track: str) -> Method:
        """Called by plan: the method as a protocol of this track asks it; a plain function becomes a method here."""
        return self

    def on_world(self, world: str) -> Mapping[str, Any]:
        """Called by plan: parameters that follow from the name of the world, where the spec leaves them open."""
        return {}


class Explainer(Method):
    """Says where a model's prediction of a class comes from."""

    track = "explain"
    example = "diorama run -w birds -M birds_cnn -m {} -p single_deletion"

    @abstractmethod
    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """One answer for each image (n, h, w, 3) and target class."""

    def refuses(self, model: Model) -> str:
        """Called by plan: why it cannot explain this model, or an empty string."""
        return ""


class ImageByImage(Explainer):
    """An explainer that needs the same passes for every class: it is given one image and all targets."""

    @abstractmethod
    def explain_targets(self, model: Model, image: np.ndarray, targets: Sequence[int]) -> Sequence[Answer]:
        """One answer for each target of one image (h, w, 3)."""


class SharedPasses(Explainer):
    """An explainer whose passes through the model serve other explainers too: the bench caches the passes."""

    @property
    @abstractmethod
    def shared(self) -> tuple[Any, ...]:
        """The cache key of the passes: a name, and all they depend on besides the model, the images and the targets."""

    @abstractmethod
    def passes(self, model: Model, images: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The results (k, n, …) of passing n images through the model, for `targets` (k, n): k of each image.

        One forward pass serves all k targets of an image.
        """

    @abstractmethod
    def maps(self, passed: np.ndarray) -> Sequence[Answer]:
        """The answers computed from the passes of one target of each image, (n, …)."""

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """One answer for each image, computed from its own passes."""
        return self.maps(self.passes(model, images, np.asarray(targets)[None])[0])


class Decomposer(Method):
    """Splits an image into reflectance and shading."""

    track = "decompose"
    example = "diorama run -w mondrian -m {} -p lmse"

    @abstractmethod
    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers of frames[0]; frames[1:] are the `views`."""


class Sweeping(Decomposer):
    """A decomposer that computes all points of its grid together, because that is cheaper."""

    @abstractmethod
    def sweep(self, frames: Sequence[Frame]) -> Iterable[Layers]:
        """One answer for each point of `grid`."""


At = tuple[str, Sequence[str]]  # a branch, and layers on the way to it


class Layered(Decomposer):
    """A decomposition network whose inner layers can be read, for CSM."""

    layers: tuple[str, ...]

    @abstractmethod
    def features(self, frames: Sequence[Frame], branch: str, layer: str) -> np.ndarray:
        """The output (n, d) of a layer on the way to a branch, `reflectance` or `shading`."""

    @abstractmethod
    def loss_grad(self, frames: Sequence[Frame], branch: str, layer: str, truth: Sequence[np.ndarray]) -> np.ndarray:
        """The gradient (n, d) of the squared error of a branch by the output of a layer."""

    def features_of(self, frames: Sequence[Frame], asked: Sequence[At]) -> list[list[np.ndarray]]:
        """Called by CSM: `features` at several branches and layers; a network that gets all from one pass overrides it."""
        return [[self.features(frames, branch, layer) for layer in layers] for branch, layers in asked]

    def loss_grads_of(self, frames: Sequence[Frame], asked: Sequence[At], truths: Sequence[Any]) -> list[list[Any]]:
        """Called by CSM: `loss_grad` at several branches and layers; the truths are those of each `asked`."""
        pairs = zip(asked, truths, strict=True)
        return [[self.loss_grad(frames, b, layer, truth) for layer in layers] for (b, layers), truth in pairs]


class Encoder(Method):
    """Gives images a code."""

    track = "represent"
    example = "diorama run -w sprites -m {} -p mig"

    @abstractmethod
    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The codes (n, latents)."""


class Decoding(Encoder):
    """An encoder that can go back."""

    @abstractmethod
    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, h, w, 3) of codes."""


class Trainer(Method):
    """Finds the direction that separates a concept from others, from inner products of activations."""

    track = "concept"
    gradients = True
    #: Whether products are taken about the mean of the other images; False for trainers whose steps depend on the origin.
    centred: bool = True
    example = "diorama run -w birds -M birds_cnn -m {} -p \"tcav(concept=birds, do='beak=2')\""

    @abstractmethod
    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: Any) -> Any:
        """Coefficients and intercepts of the direction, for a batch of (n, n) products and (n,) labels of ±1."""


class Fitting(Method):
    """A method that learns from other cases of its fold first."""

    @abstractmethod
    def fit(self, examples: Iterator[list[Frame]], objective: Callable[[Any, Frame], float] | None) -> dict[str, Any]:
        """Called once per fold: named arrays learnt from frames with their truth; `objective` is the protocol's own."""

    @abstractmethod
    def fitted(self, fit: dict[str, Any]) -> Any:
        """The fitted method."""


class Saved(Method):
    """Answers that were computed elsewhere and are read by the name of their case."""

    @abstractmethod
    def load(self, case: str, frame: Frame, target: int | None) -> Answer:
        """The saved answer of a case."""


class Control(Method):
    """Answers of known quality: it may ask the bench for the truth."""

    @abstractmethod
    def answers(self, bench: Bench, scene: Any, target: int | None) -> list[Answer]:
        """One answer for each point of its grid."""


# Protocols --------------------------------------------------------------------------------------------------------------


class Protocol(Contract):
    """Scores answers against the truth. Its file holds the formula; bench and run do batching, caching and files."""

    #: Which methods it judges: explain, decompose, represent, concept; "" judges the model itself.
    track: str
    #: What a world must have (names of truth) and be (classes of `core.capabilities`). Checked by plan.
    needs: tuple[str | type[World], ...] = ()
    #: Whether it judges answers about a model, and so needs one.
    model: bool = False
    #: Metrics that tables leave out.
    unlisted: tuple[str, ...] = ()
    direction: Direction = "higher"
    #: Raised by one when values change although parameters and sources stay the same.
    version: int = 1
    #: Sizes of a planted error, smallest first, and what they are sizes of.
    doses: tuple[float, ...] = ()
    dose_name: str = ""
    #: Whether tables show the standard deviation over cases.
    shows_deviation: bool = False
    #: Called by `diorama check`: why the true answer stays below the top.
    ceiling: str = ""

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]:
        """The metrics of a case. The first is the leading one, unless `derived` names another."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Metrics of the whole cell, computed by `summarise`; the first is the leading one."""
        return ()

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest value of the leading metric."""
        return (0.0, 1.0)

    @property
    def ranges(self) -> Mapping[str, Bounds]:
        """The ranges of other metrics, where they are not `range`."""
        return {}

    @property
    def published(self) -> Mapping[tuple[str, str], float]:
        """Called by manifests: known means under exactly this protocol, by (world, method)."""
        return {}

    @property
    def no_oracle(self) -> str:
        """Called by `diorama check`: why the truth has no score at all, or an empty string."""
        return ""

    @property
    def tried_on(self) -> tuple[str, ...]:
        """Called by `diorama check`: worlds to try first."""
        return ()

    @property
    def changes(self) -> tuple[str, ...]:
        """Checked by plan: factors that `do` must be able to change."""
        return ()

    # When a run is planned

    def count(self, world: World, asked: int | None) -> int:
        """Called by plan: how many cases this world gives when `asked` cases are wanted (None: the usual number)."""
        if world.length is None:
            return asked or USUAL_CASES
        return min(asked or world.length, world.length)

    def usual_model(self, world: str) -> str:
        """Called by plan if no model is given: the spec of the model for the world of this name, or an empty string."""
        return ""

    def refuses(self, world: World, model: Model | None, method: Any) -> str:
        """Called by plan, after `needs`: why this cell makes no sense, or an empty string."""
        return ""

    def case(self, world: World, seed: int, index: int) -> Case:
        """Called by plan: the index-th case, whatever the number of cases. By default one scene of the world."""
        name, scene = world.scene_at(seed, index)
        return Case(name, {"scene": scene.to_json()})

    def scenes(self, world: World, case: Case) -> Sequence[Scene]:
        """Called by fits: the scenes whose frames a method is fitted on when a case is among its examples."""
        return [case.scene]

    def settings(self, world: World) -> dict[str, str]:
        """Called by manifests: settings to print with every number."""
        return {}

    def paper(self, model: str, method: str) -> dict[str, float] | None:
        """Called by manifests: what the paper reports for the network and method of these names, by metric."""
        return None

    # While a case is computed

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Called once per unit: asks for the frames, logits and answers that its cases need, so that they pass through
        the model in common batches.
        """

    @abstractmethod
    def score(self, bench: Bench, case: Case) -> Iterable[Score]:
        """Called once per case and point of the method's grid: its scores. Raises Undefined or Excluded."""

    def arrays(self, bench: Bench, case: Case) -> dict[str, np.ndarray]:
        """Called after `score`: arrays to store beside the rows, as `keep/<case>.npz`."""
        return {}

    def seen(self, bench: Bench, case: Case) -> dict[str, np.ndarray]:
        """Called by the lab for a case that is not one scene: the `answer` and the true arrays by name; otherwise empty."""
        return {}

    def fold(self, index: int, count: int) -> list[int]:
        """Called by fits: the cases that a method judged on case `index` may learn from."""
        return two_fold(index, count)

    @property
    def objective(self) -> Callable[[Any, Frame], float] | None:
        """Called by fits: the score of one answer on one frame, lower is better, for methods that are fitted to it."""
        return None

    def oracle(self, bench: Bench, scene: Any, target: int | None) -> Answer:
        """Called by controls: the true answer."""
        raise Undefined("the protocol has no oracle")

    def dosed(self, bench: Bench, scene: Any, target: int | None, dose: float) -> Answer:
        """Called by controls for each of `doses`: the true answer with an error of this size."""
        raise Undefined("the protocol does not say how to add an error to the true answer")

    # When it is looked at

    def summarise(self, rows: Sequence[Row]) -> Condensed | None:
        """Called when rows are complete, from rows alone: the metrics of the whole cell; None where there are none."""
        return None

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Called by the gallery for the worst cases."""
        return []
