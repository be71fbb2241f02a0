"""The server: one page and one socket on loopback, protected by a token and by checks of Host and Origin."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import re
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from diorama.core.errors import InputError
from diorama.core.guard import attempt
from diorama.lab.cases import Cases, saved_case
from diorama.lab.desk import Desk
from diorama.lab.lanes import Helper, Job, Lane, Specs, quick
from diorama.lab.messages import LONGEST, QUICK, SLOW, Reply, Request, packed, read

STATIC = Path(__file__).parent / "static"
#: The most replies that wait for a slow page; then the oldest are dropped.
WAITING = 256
#: Nothing is loaded from elsewhere, only our own script files run, and the page cannot be framed.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(eq=False)
class Lab:
    """The state of the server: a desk with its lanes, and the cases of a run if it shows one."""

    desk: Desk
    specs: Specs
    folder: Path
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cases: Cases | None = None
    first: dict[str, Any] | None = None
    started: str = field(default_factory=lambda: secrets.token_hex(4))
    pages: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.helper = Helper(self.specs)
        self.lanes = {"quick": Lane(quick(self.desk)), "slow": Lane(self.helper)}

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins from which pages may connect."""
        return tuple(f"http://{host}:{self.port}" for host in ("127.0.0.1", "localhost"))

    def knows(self, token: str | None) -> bool:
        """Whether a token is the right one."""
        return hmac.compare_digest((token or "").encode(), self.token.encode())

    def app(self) -> Callable[..., Awaitable[None]]:
        """The application."""
        routes = [
            Route("/", self._page),
            Route("/report", self._report),
            Route("/favicon.ico", _no_icon),
            WebSocketRoute("/socket", self._socket),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        return guarded(Starlette(routes=routes, lifespan=self._lifespan), self.origins)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        for lane in self.lanes.values():
            lane.start()
        try:
            yield
        finally:
            for lane in self.lanes.values():
                lane.end()
            self.helper.end()

    # Pages

    async def _page(self, asked: HttpRequest) -> Response:
        if not self.knows(asked.query_params.get("token")):
            return PlainTextResponse("Open the address that `diorama lab` printed: the token is wrong.\n", 403)
        return HTMLResponse((STATIC / "index.html").read_text(encoding="utf-8"))

    async def _report(self, asked: HttpRequest) -> Response:
        """The report of the run, whose gallery pictures open in the lab."""
        if not self.knows(asked.query_params.get("token")):
            return PlainTextResponse("The token is missing or wrong.\n", 403)
        if self.cases is None:
            return PlainTextResponse("The lab was started with a world, not with a run.\n", 404)
        page = await asyncio.to_thread(self.cases.report)
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        page = page.replace("</body>", '<script type="module" src="/static/report-links.js"></script></body>')
        hashes = (b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
        allowed = " ".join(f"'sha256-{one}'" for one in hashes)
        policy = POLICY.replace("script-src 'self'", f"script-src 'self' {allowed}")
        policy = policy.replace("style-src 'self'", "style-src 'unsafe-inline'")
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    # The socket

    async def _socket(self, socket: WebSocket) -> None:
        if socket.headers.get("origin") not in self.origins or not self.knows(socket.query_params.get("token")):
            await socket.close(1008)  # before it is accepted: 403
            return
        await socket.accept()
        page, queue = next(self.pages), asyncio.Queue[bytes](WAITING)
        loop = asyncio.get_running_loop()

        def deliver(head: dict[str, Any], buffers: list[bytes]) -> None:
            loop.call_soon_threadsafe(_enqueue, queue, packed(head, buffers))

        sending = asyncio.create_task(_send(socket, queue))
        try:
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                self._handle(page, message.get("text") or message.get("bytes") or "", deliver)
        except (WebSocketDisconnect, RuntimeError):
            return
        finally:
            sending.cancel()
            for lane in self.lanes.values():
                lane.leave(page)

    def _handle(self, page: int, text: str | bytes, deliver: Callable[[dict[str, Any], list[bytes]], None]) -> None:
        """Put a request into the lanes, or reply what is wrong with it."""
        outcome = attempt(lambda: read(text))
        if outcome.error:
            return deliver(Reply("error", {"message": outcome.text}).head(_seq(text)), [])
        asked: Request = outcome.value
        job = Job(page, asked, deliver)
        if set(asked.want) & set(QUICK) or not asked.want:
            self.lanes["quick"].put(job)
        if set(asked.want) & set(SLOW):
            self.lanes["slow"].put(job)
        for want in asked.want:
            if want in ("hello", "sample", "cases", "case", "save"):
                reply = attempt(lambda want=want: self._reply(want, asked))  # type: ignore[misc]
                job.send(reply.value if reply.error is None else Reply("error", {"message": reply.text}))

    def _reply(self, want: str, asked: Request) -> Reply:
        if want == "hello":
            return Reply("hello", {**self.desk.hello(), **self._about()})
        if want == "sample":
            return self.desk.sample(asked)
        if want == "save":
            return Reply("saved", saved_case(self.folder, self.desk, asked))
        if self.cases is None:
            raise InputError("the lab was started with a world, not with a run: there are no cases")
        return Reply("cases", self.cases.listed()) if want == "cases" else Reply("case", self.cases.case(asked.name))

    def _about(self) -> dict[str, Any]:
        options = [*(f"-M '{m}'" for m in self.specs.models), *(f"-m '{m}'" for m in self.specs.methods)]
        command = " ".join([f"diorama lab '{self.specs.world}'", *options])
        return {"command": command, "started": self.started, "cases": self.cases is not None, "first": self.first}


async def _no_icon(asked: HttpRequest) -> Response:
    """An empty response: browsers ask for an icon on every page."""
    return Response(status_code=204)


def _enqueue(queue: asyncio.Queue[bytes], data: bytes) -> None:
    """Queue a reply; if the queue is full, the oldest reply is dropped."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(data)


async def _send(socket: WebSocket, queue: asyncio.Queue[bytes]) -> None:
    while True:
        await socket.send_bytes(await queue.get())


def _seq(text: str | bytes) -> int:
    """The `seq` of a message that is not valid, or 0."""
    data = text[:LONGEST].encode(errors="replace") if isinstance(text, str) else text[:LONGEST]
    found = re.search(rb'"seq"\s*:\s*(\d{1,15})', data)
    return int(found[1]) if found else 0


def guarded(app: Any, origins: tuple[str, ...]) -> Callable[..., Awaitable[None]]:
    """The application with exact checks of Host and Origin, against other pages and DNS rebinding."""
    hosts = {origin.removeprefix("http://").encode() for origin in origins}

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        named = [value for name, value in scope["headers"] if name == b"host"]
        origin = [value.decode("latin1") for name, value in scope["headers"] if name == b"origin"]
        if len(named) != 1 or named[0] not in hosts or any(one not in origins for one in origin):
            return await _refuse(scope, receive, send)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                more = [(n.lower().encode(), v.encode()) for n, v in HEADERS.items() if n.lower().encode() not in known]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await app(scope, receive, with_headers)

    return checked


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        return await send({"type": "websocket.close", "code": 1008})
    await PlainTextResponse("This address serves its own page only.\n", 403)(scope, receive, send)


def serve(lab: Lab, sock: Any) -> None:
    """Serve on an open loopback socket until Ctrl-C."""
    import uvicorn

    from diorama.core.device import one_thread

    config = uvicorn.Config(
        lab.app(),
        log_level="error",
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=LONGEST + 1024,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
    )
    with one_thread():
        uvicorn.Server(config).run(sockets=[sock])


def bound(port: int) -> Any:
    """A socket on loopback; port 0 takes any that is free."""
    import socket

    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
        sock.listen(128)  # early connections wait until the server is up
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; give another, or 0 for any that is free") from error
    return sock


def shown_scene(desk: Desk, text: str) -> dict[str, Any]:
    """The scene of `--scene`: JSON as `share` copies it, or a number."""
    if text.isdigit():
        return desk.numbered(0, int(text))[1].to_json()
    asked = read(json.dumps({"seq": 0, "scene": _json(text)}))
    scene = desk.scene(asked)
    outcome = attempt(lambda: desk.world.object.render([scene]))
    if outcome.error:
        raise InputError(f"--scene cannot be rendered: {outcome.text}")
    return scene.to_json()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"--scene is no JSON scene and no number: {error}") from error
