"""The workbench over HTTP, on this machine only.

Access needs the token in the address, which also keeps out other pages in the same browser: requests must name this
host, come from this origin if they name one, and carry the token. Nothing is loaded from other sites.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .api import Api
from .journal import state_folder
from .session import Session
from .wire import Answer, as_json

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError as error:
    raise ImportError("the workbench needs Starlette and uvicorn: pip install 'rankrls[workbench]'") from error

HOST = "127.0.0.1"
PAGE = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
MOST_BYTES = {"/api/do": 4 << 20, "/api/judgments": 32 << 20}  # largest request
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WORKERS = 8  # threads that answer; more would only wait for each other
HEARTBEAT = 10.0  # seconds between signs of life to an idle page
LOOK = 0.2  # seconds until a stream notices that the server is closing


class Guard:
    """Lets only requests of this page through."""

    def __init__(self, app: Any, token: str, port: int):
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(Request(scope))

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((k.lower().encode(), v.encode()) for k, v in HEADERS.items()),
                ]
            await send(message)

        await (self.app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """The response to a request that must not pass; None if it may."""
        if request.headers.get("host", "") not in self.hosts:
            return PlainTextResponse("this address is only for its own machine", 403)
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if (origin is not None and origin not in self.origins) or site == "cross-site":
            return PlainTextResponse("requests from other pages are refused", 403)
        if not request.url.path.startswith("/api/"):
            return None
        given = request.headers.get("x-token") or request.query_params.get("token") or ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return _response(
                as_json({"error": "the token is missing or wrong: open the address that was printed"}, 401)
            )
        return None


def application(session: Session, token: str, port: int, closing: Callable[[], bool] = lambda: False) -> Any:
    """The ASGI application of a session; streams end when `closing()` is true."""
    api, workers = Api(session), ThreadPoolExecutor(WORKERS, thread_name_prefix="workbench answers")
    files = {
        path.relative_to(PAGE).as_posix(): path for path in PAGE.rglob("*") if path.is_file() and path.suffix in KINDS
    }

    async def answer(request: Request) -> Response:
        body = b""
        if request.method == "POST":
            most = MOST_BYTES.get(request.url.path, 1 << 16)
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    return _response(as_json({"error": f"a request here has at most {most:,} bytes"}, 413))
        path, params = request.path_params["path"], dict(request.query_params)
        loop = asyncio.get_running_loop()
        return _response(await loop.run_in_executor(workers, api.answer, request.method, path, params, body))

    async def page(request: Request) -> Response:
        path = files.get(request.path_params.get("path") or "index.html")
        if path is None:
            return PlainTextResponse("not found", 404)
        return Response(path.read_bytes(), media_type=KINDS[path.suffix])

    async def events(request: Request) -> Response:
        return StreamingResponse(_events(session, closing), media_type="text/event-stream")

    routes = [
        Route("/api/events", events),
        Route("/api/{path}", answer, methods=["GET", "POST"]),
        Route("/", page),
        Route("/{path:path}", page),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _response(answer: Answer) -> Response:
    headers = {} if answer.name is None else {"Content-Disposition": f'attachment; filename="{answer.name}"'}
    return Response(answer.content, answer.status, headers, answer.kind)


async def _events(session: Session, closing: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield changes and progress as they happen; of unread progress, only the latest."""
    loop, wake = asyncio.get_running_loop(), asyncio.Event()
    waiting: dict[str, dict[str, Any]] = {}

    def take(event: dict[str, Any]) -> None:
        waiting[event["type"]] = event
        wake.set()

    def hear(event: dict[str, Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(take, event)

    stop = session.listen(hear)
    try:
        yield _line({"type": "hello", "version": session.version})
        quiet = 0.0
        while not closing():
            try:
                await asyncio.wait_for(wake.wait(), LOOK)
            except TimeoutError:
                quiet += LOOK
                if quiet >= HEARTBEAT:
                    quiet = 0.0
                    yield b": alive\n\n"
                continue
            wake.clear()
            events = list(waiting.values())
            waiting.clear()
            for event in events:
                yield _line(event)
    finally:
        stop()


def _line(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


# ---------------------------------------------------------------- running


class Access:
    """The token and port of a journal, which survive a restart so that an open page finds its server again."""

    def __init__(self, journal: Path | None):
        key = hashlib.sha256(str(journal.resolve()).encode()).hexdigest()[:16] if journal is not None else None
        self.path = None if key is None else state_folder() / f"{key}.json"
        self.token, self.port = secrets.token_urlsafe(24), 0
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if self.path is not None:
                stored = json.loads(self.path.read_text())
                if len(stored["token"]) >= 20 and 0 <= int(stored["port"]) < 65536:
                    self.token, self.port = str(stored["token"]), int(stored["port"])

    def store(self, port: int) -> None:
        """Store the port, if there is a place for it; only the owner may read it."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump({"token": self.token, "port": port}, file)


class Server:
    """Serves a session: `start` in a thread, `run` until interrupted."""

    def __init__(self, session: Session, port: int = 0):
        self.session = session
        access = Access(session.journal.path)
        self.socket = _bound(port, access.port)
        self.port = self.socket.getsockname()[1]
        access.store(self.port)
        self.url = f"http://{HOST}:{self.port}/?token={access.token}"
        config = uvicorn.Config(
            application(session, access.token, self.port, lambda: self._server.should_exit),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until interrupted."""
        try:
            self._server.run(sockets=[self.socket])
        finally:
            self.socket.close()
            self.session.close()

    def start(self) -> Server:
        """Serve in a separate thread; returns once the address answers."""
        self._thread = threading.Thread(target=self._server.run, args=([self.socket],), daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)
        return self

    def close(self) -> None:
        """Stop serving and end the session."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.socket.close()
        self.session.close()


def _bound(port: int, last: int) -> socket.socket:
    """A socket on this machine: at the requested port, or at the last one if it is free, or at any."""
    for wanted in [port] if port else [last, 0]:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio then sets no delay
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, wanted))
            made.listen(128)  # requests before the server is up wait rather than fail
            return made
        except OSError as error:
            made.close()
            if port:
                raise ValueError(f"port {port} cannot be used ({error.strerror}): choose another --port") from None
    raise ValueError("no port is free on this machine")
