"""The lab in a notebook cell: the same page, with the widget's channel in place of the socket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from diorama.adapt.live import component, listed
from diorama.core.catalogue import Component, Kind
from diorama.core.errors import importing
from diorama.core.guard import attempt
from diorama.core.scene import Scene
from diorama.data.views import WorldView
from diorama.lab.desk import Desk
from diorama.lab.lanes import Deliver, Job, Lane, both
from diorama.lab.messages import Reply, request

STATIC = Path(__file__).parent / "static"
#: The modules of the page, each after those it imports; a widget takes a single file.
ORDER = ("dom", "wire", "draw", "state", "scores", "bars", "knobs", "tiles", "tracks", "cases", "export", "lab")


def script() -> str:
    """The page's modules joined to one, without their imports."""
    texts = [(STATIC / f"{name}.js").read_text(encoding="utf-8") for name in ORDER]
    bare = [re.sub(r"^import .*?;\n", "", text, flags=re.MULTILINE) for text in texts]
    joined = "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in bare)
    return f"{joined}\nexport default {{ render }};\n"


def desk_of(world: Any, model: Any, methods: Any) -> Desk:
    """A desk of specs or live objects."""
    stage = world.name if isinstance(world, WorldView) else world
    made = component("world", stage)
    side = made.object.size
    desk = Desk(made, _each("model", model, side), _each("method", methods, None))
    desk.check()
    return desk


def _each(kind: Kind, given: Any, side: int | None) -> list[Component]:
    return [component(kind, one, name, side) for name, one in listed(given)]


def show(world: Any, model: Any = (), methods: Any = (), scene: int | Scene = 0) -> Any:
    """The lab as a widget of anywidget."""
    with importing():
        import anywidget
    desk = desk_of(world, model, methods)
    first = scene if isinstance(scene, Scene) else desk.numbered(0, scene)[1]

    class LabWidget(anywidget.AnyWidget):
        _esm, _css = script(), (STATIC / "lab.css").read_text(encoding="utf-8")

    widget = LabWidget()
    lane = Lane(both(desk)).start()
    widget.on_msg(lambda _, content, __: handle_message(desk, lane, first, content, widget.send))
    return widget


def handle_message(desk: Desk, lane: Lane, first: Scene, content: Any, send: Deliver) -> None:
    """Answer a message of the page, or put it into the lane."""
    outcome = attempt(lambda: request(content))
    if outcome.error:
        return send(Reply("error", {"message": outcome.text}).head(0), [])
    job = Job(0, outcome.value, send)
    if "hello" in job.request.want:
        about = {"command": f"diorama lab '{desk.world.label}'", "started": "notebook", "cases": False}
        return job.send(Reply("hello", {**desk.hello(), **about, "first": first.to_json()}))
    if "sample" in job.request.want:
        return job.send(desk.sample(job.request))
    lane.put(job)
