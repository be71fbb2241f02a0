"""Contract checks for decomposition methods. Each takes the component and returns a one-line problem or an empty string."""

from functools import lru_cache
from typing import Any

import numpy as np

from diorama.adapt import adapt
from diorama.core.answers import Layers, check_answer
from diorama.core.catalogue import Component, build
from diorama.core.contracts import Fitting, Sweeping
from diorama.core.errors import InputError
from diorama.core.folds import two_fold
from diorama.core.frame import Frame
from diorama.core.guard import attempt


@lru_cache(maxsize=4)
def _scenes(count: int) -> list[tuple[Any, Any]]:
    world = build("world", "mondrian(size=48, patches=6)").object
    return [(world, world.scene_at(0, i)[1]) for i in range(count)]


def _frames(method: Any, index: int = 0) -> list[Frame]:
    world, scene = _scenes(4)[index]
    return world.render([scene, *(world.do(scene, **view) for view in method.views)])


def _prepared(component: Component) -> Any:
    """The method, fitted if necessary, at the first point of its grid if it has one."""
    method = component.object.for_track("decompose")
    if isinstance(method, Fitting):
        learned = method.fitted(method.fit(iter([_frames(method, i) for i in two_fold(0, 4)]), None))
        return adapt("method", learned, component.name)
    return component.at(method.grid[0]) if method.grid else method


def _decompose(method: Any, frames: list[Frame]) -> Layers:
    return method.decompose(_shown(method, frames))


def _shown(method: Any, frames: list[Frame]) -> list[Frame]:
    """The frames in the form that a run gives to the method."""
    return frames if method.given_truth else [frame.blind() for frame in frames]


def answer_is_valid(component: Component) -> str:
    """The answer is Layers, finite, of the frame's size."""
    method = _prepared(component)
    frames = _frames(method)
    answer = _decompose(method, frames)
    problem = attempt(lambda: check_answer(answer, frames[0].image.shape[:2])).error
    return str(problem) if problem else ("" if isinstance(answer, Layers) else "the answer is not Layers")


def answers_the_same_twice(component: Component) -> str:
    """The answer is a function of the frames, not of global random states or earlier frames."""
    method = _prepared(component)
    first = _decompose(method, _frames(method))
    _decompose(method, _frames(method, 1))
    second = _decompose(method, _frames(method))
    same = all(np.array_equal(getattr(first, n), getattr(second, n)) for n in ("reflectance", "shading"))
    return "" if same else "the same frames gave two different answers: make randomness a function of (seed, scene)"


def leaves_frames_alone(component: Component) -> str:
    """The frames given are not written to."""
    method = _prepared(component)
    frames, copies = _frames(method), _frames(method)
    _decompose(method, frames)
    same = all(np.array_equal(a.image, b.image) for a, b in zip(frames, copies, strict=True))
    return "" if same else "the method wrote to a frame"


def grid_is_consistent(component: Component) -> str:
    """Every grid point is a set of parameters; `sweep` gives the same answers as the method at each point."""
    method = component.object
    grid = method.grid
    if not grid:
        return ""
    made = attempt(lambda: [component.at(point) for point in grid])
    if made.error:
        return f"a point of the grid cannot be made: {made.reason}"
    if isinstance(method, Sweeping):
        frames = _frames(method)
        swept = list(method.sweep(_shown(method, frames)))
        if len(swept) != len(grid):
            return f"sweep gave {len(swept)} answers for {len(grid)} grid points"
        for i in (0, len(grid) // 2, len(grid) - 1):
            single = _decompose(made.value[i], frames)
            if not np.allclose(single.reflectance, swept[i].reflectance, rtol=1e-4, atol=1e-6):
                return f"sweep and decompose differ at {grid[i]}"
    return ""


def missing_files_are_named(component: Component) -> str:
    """Saved predictions name the case and the folder when a file is missing."""
    error = attempt(lambda: component.object.load("no-such-case", _frames(component.object)[0], None)).error
    named = isinstance(error, InputError) and "no-such-case" in str(error)
    return "" if named else "a missing file is not an InputError naming the case"


CHECKS = (answer_is_valid, answers_the_same_twice, leaves_frames_alone, grid_is_consistent)
