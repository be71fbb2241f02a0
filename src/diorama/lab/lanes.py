"""Lanes: who computes what. In each the latest request of a page wins; what is older and not begun is dropped.

The quick lane is a thread: pictures, logits, effects. The slow lane hands requests to a process of its own, because
methods and their guards (seeds, switches of torch, warnings) belong to a whole process; so nothing that takes long stands
in the way of a drag. A notebook has live objects, which no other process can have: there one thread does both.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from diorama.core.catalogue import build
from diorama.core.device import one_thread, start_with_one_thread
from diorama.core.errors import InputError
from diorama.core.guard import attempt
from diorama.lab.answers import Passes, interruptible, maps, scores
from diorama.lab.desk import Desk, Send, Stale
from diorama.lab.messages import QUICK, SLOW, Reply, Request, packed, request
from diorama.lab.tracks import codes, concept, layers

#: Called with the head of a reply and its arrays' bytes.
Deliver = Callable[[dict[str, Any], list[bytes]], None]
#: Seconds between two looks at whether work is still wanted.
LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """A request of a page, and where its answers go."""

    page: int
    request: Request
    deliver: Deliver

    def send(self, reply: Reply) -> None:
        """Deliver an answer."""
        self.deliver(reply.head(self.request.seq), reply.buffers())

    def done(self, stale: bool = False) -> None:
        """Say that no more answers come; `stale` where a newer request has taken the place of this one."""
        self.send(Reply("done", {"stale": stale, "want": list(self.request.want)}))


@dataclass(eq=False)
class Lane:
    """A thread that works on the latest request of every page in turn."""

    work: Callable[[Job, Callable[[], bool]], None]
    waiting: dict[int, Job] = field(default_factory=dict)
    bell: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False

    def start(self) -> Lane:
        """Begin to work."""
        threading.Thread(target=self._run, name="lab", daemon=True).start()
        return self

    def put(self, job: Job) -> None:
        """Take a request; one of the same page that was not begun is dropped, one under way is told to stop."""
        with self.bell:
            self.waiting.pop(job.page, None)
            self.waiting[job.page] = job
            self.bell.notify()

    def leave(self, page: int) -> None:
        """A page has gone."""
        with self.bell:
            self.waiting.pop(page, None)

    def end(self) -> None:
        """Work no more."""
        with self.bell:
            self.ended = True
            self.bell.notify()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            attempt(lambda job=job: self.work(job, lambda: self.ended or job.page in self.waiting))  # type: ignore[misc]

    def _next(self) -> Job | None:
        with self.bell:
            while not self.waiting and not self.ended:
                self.bell.wait()
            return None if self.ended else self.waiting.pop(next(iter(self.waiting)))


def fresh_of(stale: Callable[[], bool]) -> Callable[[], None]:
    """What raises Stale where a newer request is there."""

    def fresh() -> None:
        if stale():
            raise Stale

    return fresh


def answered(job: Job, ask: Callable[[Send], None]) -> None:
    """Answer a request: whatever goes wrong is one line for the page, and `done` says that there is no more to come."""
    outcome = attempt(lambda: ask(job.send))
    stale = isinstance(outcome.error, Stale)
    if outcome.error and not stale:
        said = outcome.text if isinstance(outcome.error, InputError) else outcome.reason
        job.send(Reply("error", {"message": said}))
    job.done(stale)


def quick(desk: Desk) -> Callable[[Job, Callable[[], bool]], None]:
    """The work of the quick lane."""
    return lambda job, stale: answered(job, lambda send: desk.quick(job.request, send, fresh_of(stale)))


@dataclass(eq=False)
class Slow:
    """What answers slow requests, in this process; its models give up between two passes what nobody waits for."""

    desk: Desk
    passes: Passes = field(default_factory=Passes)

    def __post_init__(self) -> None:
        models = [interruptible(model, self.passes.between) for model in self.desk.models]
        self.desk = replace(self.desk, models=models, cells={})

    def answer(self, wanted: Request, send: Send, fresh: Callable[[], None]) -> None:
        """Maps, layers, codes and a concept as they arrive, then scores."""
        self.passes.fresh = fresh
        asks = {
            "maps": lambda: maps(self.desk, wanted, send, self.passes),
            "layers": lambda: layers(self.desk, wanted, send, fresh),
            "codes": lambda: codes(self.desk, wanted, send, fresh),
            "concept": lambda: concept(self.desk, wanted, send, fresh),
            "scores": lambda: scores(self.desk, wanted, send, self.passes),
        }
        for want, ask in asks.items():
            if want in wanted.want:
                fresh()
                ask()


def both(desk: Desk) -> Callable[[Job, Callable[[], bool]], None]:
    """The work of the one lane of a notebook."""
    slow = Slow(desk)

    def work(job: Job, stale: Callable[[], bool]) -> None:
        def ask(send: Send) -> None:
            if set(job.request.want) & set(QUICK):
                desk.quick(job.request, send, fresh_of(stale))
            if set(job.request.want) & set(SLOW):
                slow.answer(job.request, send, fresh_of(stale))

        with one_thread():
            answered(job, ask)

    return work


# The helper process


@dataclass(frozen=True, slots=True)
class Specs:
    """What the lab shows, in specs: what another process makes it again from."""

    world: str
    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    def desk(self) -> Desk:
        """The desk that these specs make."""
        models = [build("model", text) for text in self.models]
        return Desk(build("world", self.world), models, [build("method", text) for text in self.methods])


@dataclass(eq=False)
class Helper:
    """A process that answers slow requests. It is started when it is first needed, and again if it dies."""

    specs: Specs
    process: Any = None
    pipe: Connection | None = None
    cancel: Any = None

    def __call__(self, job: Job, stale: Callable[[], bool]) -> None:
        """The work of the slow lane: hand the request over and deliver what comes back until it is done."""
        if stale():
            return
        try:
            self._converse(job, stale)
        except (EOFError, OSError):
            self.end()
            job.send(Reply("error", {"message": "the helper process died"}))
            job.done()

    def _converse(self, job: Job, stale: Callable[[], bool]) -> None:
        pipe = self._ready()
        self.cancel.clear()
        pipe.send_bytes(json.dumps(job.request.to_json()).encode())
        while True:
            if not pipe.poll(LOOK):
                if stale():
                    self.cancel.set()
                continue
            head, buffers = unpacked(pipe.recv_bytes())
            job.deliver(head, buffers)
            if head["kind"] == "done":
                return

    def _ready(self) -> Connection:
        if self.process is None or not self.process.is_alive():
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.cancel = context.Event()
            given = (self.specs.world, self.specs.models, self.specs.methods, theirs, self.cancel)
            self.process = context.Process(target=_helper, args=given, daemon=True)
            self.process.start()
            theirs.close()
        assert self.pipe is not None
        return self.pipe

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join(5)
            self.process = None


def _helper(world: str, models: tuple[str, ...], methods: tuple[str, ...], pipe: Connection, cancel: Any) -> None:
    """The process: one request after the other, until the lab closes the pipe."""
    start_with_one_thread()
    slow = Slow(Specs(world, models, methods).desk())
    with one_thread():
        while True:
            try:
                asked = request(json.loads(pipe.recv_bytes()))
            except (EOFError, OSError, KeyboardInterrupt):
                return
            job = Job(0, asked, lambda head, buffers: pipe.send_bytes(packed(head, buffers)))
            answered(job, lambda send, asked=asked: slow.answer(asked, send, fresh_of(cancel.is_set)))  # type: ignore[misc]


def unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The head of a packed reply, and its arrays' bytes in one piece."""
    size = int.from_bytes(data[:4], "little")
    return json.loads(data[4 : 4 + size]), [data[4 + size :]]
