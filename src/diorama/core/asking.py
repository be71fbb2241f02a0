"""Asks a method: explanations in chunks through the model, decompositions scene by scene; answers are checked and cached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.core.answers import Answer, check_answer
from diorama.core.contracts import Control, ImageByImage, Saved, SharedPasses, Sweeping
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame
from diorama.core.memory import Key
from diorama.core.scene import Scene
from diorama.core.watch import raise_if_changed
from diorama.io.digests import array_digest

if TYPE_CHECKING:
    from diorama.core.bench import Bench

#: A scene, and the target class if the method needs one.
Question = tuple[Scene, int | None]
Questions = Mapping[Key, Question]
#: The answers to questions, one for each point of the method's grid.
Answers = dict[Key, list[Answer]]


def answered(bench: Bench, questions: Questions) -> Answers:
    """The method's answers at every point of its grid; known ones come from the cache."""
    known = {key: question for key, question in questions.items() if key in bench.memory}
    found = bench.memory.keep_all(bench.scope, known, lambda nothing: ())
    missing = {key: question for key, question in questions.items() if key not in found}
    if missing and bench.protocol.track == "explain" and not isinstance(bench.asked.object, Control | Saved):
        return found | _explain_missing(bench, missing)
    for key, question in missing.items():
        found[key] = bench.memory.keep(bench.scope, key, partial(_answer_scene, bench, *question))
    return found


def _explain_missing(bench: Bench, missing: Questions) -> Answers:
    """Compute missing explanations; if the method changed a weight of the model, all of them are discarded."""
    made: Answers = {}
    watch = bench.asked_model.watch
    for group in _group_questions(bench, missing):
        made |= bench.memory.keep_all(bench.scope, group, lambda asked: _answer_group(bench, asked))
    changed = watch.put_back(thorough=True) if watch else []
    if changed:
        bench.memory.drop(missing)
    raise_if_changed("the method", changed)
    return made


def _group_questions(bench: Bench, questions: Questions) -> Iterable[Questions]:
    """Questions that are asked together: those of one image, or as many images as make a chunk.

    A method whose forward passes serve several targets is asked about all targets of an image together, and images with
    equally many targets share a chunk.
    """
    method, images = bench.asked.object, _by_image(questions)
    if isinstance(method, ImageByImage):
        return images
    if isinstance(method, SharedPasses):
        images.sort(key=len, reverse=True)
        return [dict(chain(*(one.items() for one in some))) for some in _chunks(images, bench.chunk)]
    return [dict(some) for some in _chunks(list(questions.items()), bench.chunk)]


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _by_image(questions: Questions) -> list[dict[Key, Question]]:
    groups: dict[str, dict[Key, Question]] = {}
    for key, question in questions.items():
        groups.setdefault(question[0].key, {})[key] = question
    return list(groups.values())


def _answer_group(bench: Bench, asked: Questions) -> list[list[Answer]]:
    """The answers to the questions of one pass, checked."""
    scenes, targets = zip(*asked.values(), strict=True)
    frames = bench.frames(scenes)
    points = bench.asked.points
    methods = [bench.asked.object] if points == ({},) else [*map(bench.asked.at_point, points)]
    with bench.undisturbed(scenes[0]):
        found = [_explain(bench, method, frames, targets) for method in methods]
    answers = [[of_point[i] for of_point in found] for i in range(len(scenes))]
    return [_check_all(bench, frame, several) for frame, several in zip(frames, answers, strict=True)]


def _explain(bench: Bench, method: Any, frames: Sequence[Frame], targets: Sequence[Any]) -> list[Answer]:
    if isinstance(method, ImageByImage):
        return list(method.explain_targets(bench.forward, frames[0].srgb(), list(targets)))
    if isinstance(method, SharedPasses):
        return _shared_passes(bench, method, frames, targets)
    images, wanted = screens(frames, bench.chunk), np.array(padded(targets, bench.chunk))
    return list(method.explain(bench.asked_model.object, images, wanted))


def _shared_passes(bench: Bench, method: SharedPasses, frames: Sequence[Frame], targets: Sequence[Any]) -> list[Answer]:
    """One pass of all images for their first target, one for their second …; an image with fewer repeats its last target."""
    model, rows = bench.asked_model.object, dict[str, list[int]]()
    for i, frame in enumerate(frames):
        rows.setdefault(frame.scene.key, []).append(i)
    images = screens([frames[same[0]] for same in rows.values()], bench.chunk)
    most = max(map(len, rows.values()))
    wanted = np.array(
        [padded([targets[padded(same, most)[k]] for same in rows.values()], bench.chunk) for k in range(most)]
    )
    key = ("passes", *method.shared, array_digest(images), wanted.tobytes())
    passed = bench.keep("unit", key, lambda: method.passes(model, images, wanted))
    found = [method.maps(one) for one in passed]
    placed = {i: found[k][n] for n, same in enumerate(rows.values()) for k, i in enumerate(same)}
    return [placed[i] for i in range(len(frames))]


def _answer_scene(bench: Bench, scene: Scene, target: int | None) -> list[Answer]:
    """The answers about one scene: of a control, read from a file, or of a decomposer."""
    method = bench.asked.object
    if isinstance(method, Control):
        found = method.answers(bench, scene, target)
    elif isinstance(method, Saved):
        frame = bench.shown([bench.frame(scene)])[0]
        with bench.undisturbed(scene):
            found = [method.load(bench.case.key, frame, target)]
    else:
        found = _decompose(bench, scene)
    return _check_all(bench, bench.frame(scene), found)


def _decompose(bench: Bench, scene: Scene) -> list[Answer]:
    frames, asked = bench.shown(bench.views(scene)), bench.asked
    with bench.undisturbed(scene):
        if asked.points == ({},):
            return [asked.object.decompose(frames)]
        if isinstance(asked.object, Sweeping):
            return list(asked.object.sweep(frames))
        return [asked.at_point(point).decompose(frames) for point in asked.points]


def _check_all(bench: Bench, frame: Frame, answers: list[Answer]) -> list[Answer]:
    points = bench.asked.points
    if len(answers) != len(points):
        raise AnswerError(f"sweep gave {len(answers)} answers for a grid of {len(points)} points")
    for answer in answers:
        check_answer(answer, frame.image.shape[:2])
    return answers


def padded(items: Sequence[Any], size: int) -> list[Any]:
    """Items, the last of them repeated until there are `size`.

    >>> padded([1, 2], 4)
    [1, 2, 2, 2]
    """
    return [*items, *[items[-1]] * (size - len(items))]


def screens(frames: Sequence[Frame], size: int) -> np.ndarray:
    """Images (size, h, w, 3) as a screen shows them, the last one repeated."""
    return np.stack(padded([frame.srgb() for frame in frames], size))
