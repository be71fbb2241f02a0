"""A plan: which worlds, models, methods and protocols, how many cases; and its expansion to cells."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

from diorama.adapt import engines
from diorama.core import device, keys, spec
from diorama.core.bench import Asked, Bench
from diorama.core.case_list import CaseList
from diorama.core.cases import Case, make_case
from diorama.core.catalogue import Component, build, entries
from diorama.core.contracts import USUAL_CASES, Fitting
from diorama.core.controls import Dosed, Oracle
from diorama.core.errors import InputError, did_you_mean
from diorama.core.guard import attempt
from diorama.core.memory import Memory
from diorama.core.references import Reference, references
from diorama.core.refusals import lacking, refusal
from diorama.core.scene import digest
from diorama.core.wording import asked
from diorama.io.names import check_distinct

#: The most cases of a cell: every one has a scene in memory and a row on disk.
MOST_CASES = 100_000
#: What a plan lists.
LISTS = ("worlds", "models", "methods", "protocols")


@dataclass(frozen=True)
class Plan:
    """What the user asked for, as specs: in TOML, on the command line, or in Python, where components may be live objects.

    `keep="maps"` stores every answer beside the rows; `engine` computes logits (`adapt.engines`).
    """

    worlds: Sequence[str | Component]
    methods: Sequence[str | Component]
    protocols: Sequence[str | Component]
    models: Sequence[str | Component] = field(default_factory=list)
    cases: int | None = None
    seed: int = 0
    controls: bool = False
    keep: str = ""
    engine: str = engines.USUAL

    def __post_init__(self) -> None:
        if self.cases is not None and self.cases < 1:
            raise InputError(f"cases={self.cases}: at least one case is needed")
        if self.keep not in ("", "maps"):
            raise InputError(f"keep={self.keep!r}: write maps, or nothing")
        for name in ("worlds", "protocols"):
            if not getattr(self, name):
                raise InputError(f"the plan names no {name[:-1]}: give one with -{name[0]} or {name} = […]")

    def imports(self) -> list[str]:
        """The files and modules outside this package whose code the plan names, in its order."""
        files = [str(Path(name).resolve()) if name.endswith(".py") else name for name in self._outside_names()]
        return list(dict.fromkeys(files))

    def files(self) -> list[str]:
        """The files outside this package, as the plan spells them."""
        return list(dict.fromkeys(name for name in self._outside_names() if name.endswith(".py")))

    def moved(self, now: dict[str, str]) -> "Plan":
        """The same plan with other paths for some of its files: `now` maps old paths to new ones."""
        worlds, methods, protocols, models = (
            [spec.respelt(text, now) if isinstance(text, str) else text for text in texts]
            for texts in (self.worlds, self.methods, self.protocols, self.models)
        )
        return replace(self, worlds=worlds, methods=methods, protocols=protocols, models=models)

    def _outside_names(self) -> list[str]:
        texts = [text for name in LISTS for text in getattr(self, name) if isinstance(text, str)]
        return [name for text in texts for name in spec.outside(text) if name not in entries("model")]

    def covers(self, other: "Plan") -> bool:
        """Whether this plan includes everything that the other one asks for."""
        more = all(set(getattr(other, name)) <= set(getattr(self, name)) for name in LISTS)
        enough = self.cases == other.cases or (other.cases and (self.cases or USUAL_CASES) >= other.cases)
        same = (self.seed, self.engine) == (other.seed, other.engine)
        return bool(more and enough) and same and self.controls >= other.controls

    def to_toml(self) -> str:
        """The plan as TOML."""
        return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in self.table().items())

    def table(self) -> dict[str, Any]:
        """The plan as the table of a plan file; a live component appears by its name."""
        shown = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) not in (None, "")}
        return shown | {name: [written(given) for given in getattr(self, name)] for name in LISTS}

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """A plan from a TOML file."""
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a TOML plan: {error}") from error
        except RecursionError as error:
            raise InputError(f"{path} is not a TOML plan: it is nested too deeply") from error
        except ValueError as error:  # a number of thousands of digits
            raise InputError(f"{path} is not a TOML plan: a number in it is too long") from error
        except OSError as error:
            raise InputError(f"cannot read the plan {path}: {error.strerror}") from error
        return cls.from_table(table, str(path))

    @classmethod
    def from_table(cls, table: dict[str, Any], where: str) -> "Plan":
        """A plan from a dictionary, with every key and type checked."""
        known = [f.name for f in fields(cls)]
        for name, value in table.items():
            if name not in known:
                raise InputError(f"{where}: unknown key {name!r}; {did_you_mean(name, known)}")
            if name in LISTS:
                fits, wanted = isinstance(value, list) and all(isinstance(v, str) for v in value), "a list of strings"
            elif name == "controls":
                fits, wanted = isinstance(value, bool), "true or false"
            elif name == "keep":
                fits, wanted = value == "maps", '"maps"'
            elif name == "engine":
                fits, wanted = isinstance(value, str), 'the name of an engine, e.g. "openvino"'
            else:
                fits, wanted = type(value) is int, "a whole number"
            if not fits:
                raise InputError(f"{where}: {name} = {value!r} should be {wanted}")
        return cls(**{**{name: [] for name in LISTS}, **table})


def written(given: str | Component) -> str:
    """A component as written in a plan: its spec, with NAME= in front if the user named it."""
    if isinstance(given, str):
        return given
    return f"{given.shown}={given.spec}" if given.shown and not given.is_live else str(given.spec)


@dataclass(frozen=True)
class Cell:
    """One entry of the table: world × model × method × protocol. `control` is "", "oracle", "random" or "dose"."""

    world: Component
    model: Component | None
    method: Component | None
    protocol: Component
    seed: int
    count: int
    control: str = ""
    #: The protocols of the plan that ask the same method about the same world, this one among them.
    fellows: tuple[Any, ...] = ()
    #: What computes the model's logits.
    engine: str = engines.USUAL

    @cached_property
    def asked(self) -> Asked:
        """The method in the form that the bench takes."""
        if self.method is None and not self.control:  # a protocol that judges the model itself
            return Asked(None, "", ({},), lambda point: None)
        if self.method is None:
            control = Oracle(self.protocol.object) if self.control == "oracle" else Dosed(self.protocol.object)
            points = tuple(control.grid) or ({},)
            return Asked(control, digest([self.control, self.protocol.digest]), points, lambda point: control)
        method = self.method
        asked = method.object.for_track(self.protocol.object.track)
        return Asked(asked, method.digest, tuple(asked.grid) or ({},), method.at)

    @cached_property
    def cases(self) -> CaseList:
        """The cases of this cell."""
        made = CaseList(partial(make_case, self.protocol.object, self.world.object, self.seed), self.count)
        check_distinct(made.keys, self.world.label)
        return made

    def bench(self, case: Case, memory: Memory, asked: Asked | None = None, point: int = 0) -> Bench:
        """The bench of a case; `asked` is the fitted method, if it is fitted."""
        given = (self.world, self.model, asked or self.asked, self.protocol.object, case, memory)
        return Bench(*given, point, self.chunk, self.fellows, self.engine)

    @cached_property
    def chunk(self) -> int:
        """Images per pass: the device's chunk if any component uses torch, otherwise the CPU's."""
        parts = [part for part in (self.world, self.model, self.method, self.protocol) if part]
        torch = any("torch" in part.libraries for part in parts)
        return device.chunk(device.for_workers() if torch else "cpu")

    @property
    def fitted(self) -> bool:
        """Whether the method is fitted on other cases before it answers."""
        return isinstance(self.asked.object, Fitting)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Everything the cell's values depend on."""
        parts = {"world": self.world, "model": self.model, "method": self.method, "protocol": self.protocol}
        described: dict[str, Any] = {kind: part.key if part else None for kind, part in parts.items()}
        described |= {"seed": self.seed, "control": self.control, "chunk": self.chunk}
        described |= {"version": self.protocol.object.version, "engine": keys.engine_key()}
        if self.model and self.engine != engines.USUAL:
            described["logits"] = f"{self.engine} {keys.version(engines.PACKAGES[self.engine][0])}"
        if self.fitted:  # what it is fitted on depends on all the cases
            described["fitted_on"] = self.cases.keys
        return described

    @cached_property
    def key(self) -> str:
        """The digest of the description."""
        return digest(self.description)

    @property
    def labels(self) -> dict[str, str | None]:
        """The labels of its components, for tables."""
        method = self.method.label if self.method else self.control or None
        model = self.model.label if self.model else None
        return {"world": self.world.label, "model": model, "method": method, "protocol": self.protocol.label}

    @property
    def at(self) -> str:
        """The name of the method's grid: its parameters, joined by commas."""
        return ",".join(self.asked.points[0])

    def _references(self) -> list[Reference]:
        parts = [self.protocol, self.world, *([self.method] if self.method else [])]
        return references(list(dict.fromkeys(key for part in parts for key in part.object.cite)))

    def _as_published(self) -> bool:
        """Whether published values may be shown for this cell: it has all cases of the world as it was published."""
        world = self.world.object
        return not self.control and world.length in (None, self.count) and world.as_published

    def _paper(self) -> dict[str, float] | None:
        """The paper's values for this model and method, by the names of their components."""
        if self.method is None:
            return None
        return self.protocol.object.paper(self.model.name if self.model else "", self.method.name)

    def manifest(self) -> dict[str, Any]:
        """The manifest that is written beside the rows: all that a report needs, and everything that the key hashes."""
        protocol = self.protocol.object
        question, meanings = asked(protocol, (*protocol.derived, *protocol.metrics))
        return {
            **self.labels,
            "question": question,
            "meanings": meanings,
            "variant": self.protocol.params.get("variant", self.protocol.params.get("preset")),
            "key": self.key,
            "control": self.control,
            "track": protocol.track,
            "metrics": list(protocol.metrics),
            "derived": list(protocol.derived),
            "unlisted": list(protocol.unlisted),
            "direction": protocol.direction,
            "range": list(protocol.range),
            "ranges": {metric: list(ends) for metric, ends in protocol.ranges.items()},
            "originals": [reference.text for reference in references(list(protocol.cite))],
            "cite": [reference.text for reference in self._references()],
            "bibtex": [reference.bibtex for reference in self._references()],
            "published": protocol.published.get((self.world.name, self.method.name))
            if self._as_published() and self.method
            else None,
            "paper": self._paper(),
            "settings": protocol.settings(self.world.object),
            "at": self.at,
            "points": list(self.asked.points),
            "dose_name": protocol.dose_name,
            "shows_deviation": protocol.shows_deviation,
            "depends_on": self.description,
        }


@dataclass(frozen=True, slots=True)
class Expansion:
    """The cells of a plan, and the pairs that make no sense with the reason for each."""

    cells: list[Cell]
    skipped: list[dict[str, Any]]


def expand(plan: Plan) -> Expansion:
    """Every cell of a plan. Impossible pairs are skipped with a reason; if nothing is left that is an error."""
    engines.check(plan.engine)
    parts = {kind: [build(kind, text) for text in getattr(plan, f"{kind}s")] for kind in ("world", "model", "protocol")}
    methods = [build("method", _with_track(given, parts["protocol"])) for given in plan.methods]
    for components in (*parts.values(), methods):
        _check_names(components)
    _check_needs(parts, plan)
    cells: dict[str, Cell] = {}
    skipped: list[dict[str, Any]] = []
    on_world = _OnWorlds()
    for world in parts["world"]:
        for protocol in parts["protocol"]:
            reason, count = lacking(world, protocol), 0
            if not reason:
                count = _count_cases(world, protocol, plan.cases)
                reason = "" if count else f"{world.label} has no case for {protocol.name}"
            if reason:  # reported once, not for every method
                skipped.append({**Cell(world, None, None, protocol, plan.seed, count).labels, "reason": reason})
                continue
            models, why = _models(protocol, world, parts["model"])
            if why:
                skipped.append({**Cell(world, None, None, protocol, plan.seed, count).labels, "reason": why})
            judged = _judged(methods, parts["protocol"], protocol, plan.controls)
            for model, (given, control) in product(models, judged):
                method, why = on_world(given, world)
                cell = Cell(world, model, method, protocol, plan.seed, count, control, engine=plan.engine)
                if reason := refusal(cell) or why:
                    skipped.append({**cell.labels, "reason": reason})
                elif (same := cells.setdefault(cell.key, cell)).labels != cell.labels:
                    skipped.append({**cell.labels, "reason": f"it is the same as {_difference(same, cell)}"})
    if not cells:
        raise InputError(f"nothing can be run: {'; '.join(dict.fromkeys(s['reason'] for s in skipped)) or 'no pair'}")
    return Expansion(_with_fellows(list(cells.values())), skipped)


class _OnWorlds:
    """Methods with the parameters that follow from a world (`Method.on_world`); each is built once."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], tuple[Component, str]] = {}

    def __call__(self, method: Component | None, world: Component) -> tuple[Component | None, str]:
        """The method with the parameters that follow from this world; or unchanged, and why they cannot be set."""
        if method is None:
            return None, ""
        at = (method.label, world.label)
        if at not in self.known:
            try:
                self.known[at] = method.on(world.name), ""
            except InputError as error:
                self.known[at] = method, str(error)
        return self.known[at]


def _models(protocol: Component, world: Component, given: list[Component]) -> tuple[Sequence[Component | None], str]:
    """The models for a world: those given, else the protocol's usual one; or none, and why."""
    if not protocol.object.model:
        return [None], ""
    if given:
        return given, ""
    usual = protocol.object.usual_model(world.name)
    if not usual:
        return [], f"{protocol.name} needs a model, and has no usual one for {world.name}: give one with -M"
    return [build("model", usual)], ""


def _with_fellows(cells: list[Cell]) -> list[Cell]:
    """The cells, each with the protocols that judge the same answers (`fellows`)."""
    groups: dict[tuple[str, str, str], list[Any]] = {}
    for cell in cells:
        groups.setdefault(_group(cell), []).append(cell.protocol.object)
    return [replace(cell, fellows=tuple(groups[_group(cell)])) for cell in cells]


def _group(cell: Cell) -> tuple[str, str, str]:
    return cell.world.digest, cell.model.digest if cell.model else "", cell.asked.digest


def _check_names(components: list[Component]) -> None:
    """Refuse two different components with one label: tables tell components apart by it."""
    known: dict[str, Component] = {}
    for component in components:
        if known.setdefault(component.label, component).digest != component.digest:
            raise InputError(f"two {component.kind}s are called {component.label!r}: give one another name, NAME=SPEC")


def _difference(one: Cell, other: Cell) -> str:
    return ", ".join(str(label) for kind, label in one.labels.items() if label != other.labels[kind])


def _check_needs(parts: dict[str, list[Component]], plan: Plan) -> None:
    """Refuse a plan that lacks a model or method that a protocol needs, or has a model that none uses."""
    protocols, models = parts["protocol"], parts["model"]
    for protocol in protocols:
        usual = any(protocol.object.usual_model(world.name) for world in parts["world"])
        if protocol.object.model and not models and not usual:
            raise InputError(f"{protocol.name} needs a model: give one with -M (diorama ls models)")
        if protocol.object.track and not (plan.methods or plan.controls):
            raise InputError(f"{protocol.name} needs a method: give one with -m, or --controls for the controls alone")
    if models and not any(protocol.object.model for protocol in protocols):
        raise InputError(f"model {models[0].label!r} is not used: {protocols[0].name} judges methods that need none")


def _count_cases(world: Component, protocol: Component, asked: int | None) -> int:
    """How many cases a protocol makes of a world."""
    outcome = attempt(lambda: protocol.object.count(world.object, asked))
    if outcome.error or not isinstance(outcome.value, int):
        why = outcome.reason or f"it gave {type(outcome.value).__name__}"
        raise InputError(f"{protocol.name} cannot count the cases of {world.label}: {why}")
    if outcome.value > MOST_CASES:
        count = outcome.value
        raise InputError(f"{protocol.name}: {count} cases are too many, give at most {MOST_CASES} (cases = … or -n)")
    return max(outcome.value, 0)


def _judged(
    methods: list[Component], protocols: list[Component], protocol: Component, controls: bool
) -> Iterator[tuple[Component | None, str]]:
    """The methods and controls for a protocol, without methods of a track that only another protocol judges."""
    if not protocol.object.track:
        yield None, ""
        return
    others = {p.object.track for p in protocols} - {protocol.object.track}
    for method in methods:
        if method.object.track not in others:
            yield method, ""
    if controls:
        yield None, "oracle"
        yield build("method", f"{protocol.object.track}/random"), "random"
        if protocol.object.doses:
            yield None, "dose"


def _with_track(given: str | Component, protocols: list[Component]) -> str | Component:
    """`random` means `decompose/random` where the plan's protocols are all of that track."""
    if isinstance(given, Component):
        return given
    own, text = spec.named(given)
    name, paren, rest = text.partition("(")
    tracks = {p.object.track for p in protocols}
    short = [n for n in entries("method") if n.rpartition("/")[2] == name.strip()]
    if len(short) > 1 and len(tracks) == 1 and (full := f"{tracks.pop()}/{name.strip()}") in short:
        return (f"{own}=" if own else "") + full + paren + rest
    return given
