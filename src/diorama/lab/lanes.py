"""Lanes: queues of requests with one worker each. A newer request of a page replaces older ones that wait in the lane.

The quick lane is a thread: pictures, logits, effects. The slow lane passes requests to a helper process, so that methods
never delay a drag, and because their guards (seeds, settings of torch, warnings) affect a whole process. A notebook has
live objects, which cannot be sent to another process: there one thread does both.
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

#: A function that sends the head of a reply and its arrays' bytes.
Deliver = Callable[[dict[str, Any], list[bytes]], None]
#: Seconds between two checks whether a request is still the newest.
LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Job:
    """A request of a page, and the function that delivers its answers."""

    page: int
    request: Request
    deliver: Deliver

    def send(self, reply: Reply) -> None:
        """Deliver an answer."""
        self.deliver(reply.head(self.request.seq), reply.buffers())

    def done(self, stale: bool = False) -> None:
        """Tell the page that no more answers come; `stale`: because a newer request replaced this one."""
        self.send(Reply("done", {"stale": stale, "want": list(self.request.want)}))


@dataclass(eq=False)
class Lane:
    """A thread that works on the latest request of each page in turn. `work` is called with a job and a function `stale`."""

    work: Callable[[Job, Callable[[], bool]], None]
    waiting: dict[int, Job] = field(default_factory=dict)
    bell: threading.Condition = field(default_factory=threading.Condition)
    ended: bool = False

    def start(self) -> Lane:
        """Start the thread."""
        threading.Thread(target=self._run, name="lab", daemon=True).start()
        return self

    def put(self, job: Job) -> None:
        """Add a request; it replaces a waiting one of the same page, and makes a running one stale."""
        with self.bell:
            self.waiting.pop(job.page, None)
            self.waiting[job.page] = job
            self.bell.notify()

    def leave(self, page: int) -> None:
        """Drop the waiting request of a page that was closed."""
        with self.bell:
            self.waiting.pop(page, None)

    def end(self) -> None:
        """End the thread."""
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
    """A function that raises Stale if `stale()` is true."""

    def fresh() -> None:
        if stale():
            raise Stale

    return fresh


def answered(job: Job, ask: Callable[[Send], None]) -> None:
    """Answer a request; a failure is sent to the page as one line, and `done` comes last."""
    outcome = attempt(lambda: ask(job.send))
    stale = isinstance(outcome.error, Stale)
    if outcome.error and not stale:
        message = outcome.text if isinstance(outcome.error, InputError) else outcome.reason
        job.send(Reply("error", {"message": message}))
    job.done(stale)


def quick(desk: Desk) -> Callable[[Job, Callable[[], bool]], None]:
    """The work function of the quick lane."""
    return lambda job, stale: answered(job, lambda send: desk.quick(job.request, send, fresh_of(stale)))


@dataclass(eq=False)
class SlowAnswers:
    """Answers slow requests in this process; its models stop between two passes if a newer request has arrived."""

    desk: Desk
    passes: Passes = field(default_factory=Passes)

    def __post_init__(self) -> None:
        models = [interruptible(model, self.passes.between) for model in self.desk.models]
        self.desk = replace(self.desk, models=models, cells={})

    def answer(self, wanted: Request, send: Send, fresh: Callable[[], None]) -> None:
        """Send maps, layers, codes and a concept as they are ready, then scores."""
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
    """The work function of a notebook's only lane: quick and slow answers."""
    slow = SlowAnswers(desk)

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
    """The specs of the lab's components, from which another process can build them."""

    world: str
    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    def desk(self) -> Desk:
        """Build the desk."""
        models = [build("model", text) for text in self.models]
        return Desk(build("world", self.world), models, [build("method", text) for text in self.methods])


@dataclass(eq=False)
class Helper:
    """The helper process for slow requests. It is started when it is first needed, and again if it dies."""

    specs: Specs
    process: Any = None
    pipe: Connection | None = None
    cancel: Any = None

    def __call__(self, job: Job, stale: Callable[[], bool]) -> None:
        """The work function of the slow lane: pass the request to the process and deliver its replies."""
        if stale():
            return
        try:
            self._exchange(job, stale)
        except (EOFError, OSError):
            self.end()
            job.send(Reply("error", {"message": "the helper process died"}))
            job.done()

    def _exchange(self, job: Job, stale: Callable[[], bool]) -> None:
        pipe = self._connection()
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

    def _connection(self) -> Connection:
        if self.process is None or not self.process.is_alive():
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.cancel = context.Event()
            given = (self.specs.world, self.specs.models, self.specs.methods, theirs, self.cancel)
            self.process = context.Process(target=_helper_main, args=given, daemon=True)
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


def _helper_main(world: str, models: tuple[str, ...], methods: tuple[str, ...], pipe: Connection, cancel: Any) -> None:
    """The main function of the helper process: answers requests until the lab closes the pipe."""
    start_with_one_thread()
    slow = SlowAnswers(Specs(world, models, methods).desk())
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
