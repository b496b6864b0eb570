"""Downloads that end with the right file or none: retried, resumed, verified, and moved into place when complete.

Bytes go to a file beside the target with the suffix .part, which is renamed only once it is complete and its checksum
is right, so an interrupted download never leaves a file that looks complete. The next try resumes after the bytes that
have arrived, if the server supports that.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import socket
import sys
import tarfile
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, BinaryIO

from ..system.files import replacing, sync_folder
from ..system.limits import limits
from ..system.progress import Progress

if TYPE_CHECKING:
    from http.client import HTTPResponse

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK = 1 << 16
RETRIES = 5
FIRST_PAUSE = 0.5  # seconds before the second try; doubled after every failure
SLOWEST = 200  # bytes per second; give up on a server that stays slower for `stalled_seconds`
_sleep = time.sleep


class DownloadError(OSError):
    """A file could not be downloaded; the message says what was tried and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from rankrls.datasets import DownloadError, fetch_movielens
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         fetch_movielens(folder=folder, download=False)
    ...     except DownloadError as error:
    ...         print(type(error).__name__)
    DownloadError
    """


@dataclass(frozen=True)
class Remote:
    """A remote file: its URL, its local name and its checksum."""

    url: str
    name: str
    sha256: str | None = None  # None: record it at the first download, and check against that from then on
    homepage: str = ""


def data_home(folder: str | os.PathLike | None = None) -> Path:
    """The data folder: the argument, the environment variable RANKRLS_DATA, or the cache folder of the platform."""
    if folder is None:
        folder = os.environ.get("RANKRLS_DATA") or _platform_cache() / "rankrls"
    return Path(folder).expanduser()


def _platform_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def fetched(remote: Remote, folder: Path, *, download: bool = True) -> Path:
    """The path of the file in a folder, downloaded if it is not there."""
    path = folder / remote.name
    if path.exists():
        return path
    advice = f"get {remote.name} from {remote.homepage or remote.url} yourself and put it into {folder}"
    if not download:
        raise DownloadError(f"{path} is not there, and download=False: {advice}")
    folder.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    for attempt in range(RETRIES):
        if attempt:
            _sleep(FIRST_PAUSE * 2 ** (attempt - 1))
        try:
            _transfer(remote, path)
        except _Permanent as error:
            raise DownloadError(f"{remote.url} cannot be downloaded: {error}; {advice}") from None
        except (OSError, http.client.HTTPException, _Damaged) as error:
            failures.append(_reason(error))
        else:
            return path
    raise DownloadError(
        f"{remote.url} could not be downloaded in {RETRIES} tries ({'; '.join(dict.fromkeys(failures))}): "
        f"are you offline? Try again later, or {advice}"
    )


class _Permanent(Exception):  # noqa: N818
    """An error that another try would not fix."""


class _Damaged(Exception):  # noqa: N818
    """The downloaded bytes are not the expected file."""


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", error)
    return str(cause) or type(cause).__name__


def _transfer(remote: Remote, path: Path) -> None:
    """One try: resume where the last one stopped, check, and move the file into place."""
    part = path.with_name(path.name + ".part")
    with _owned(part) as file:
        if path.exists():  # another process has downloaded it
            part.unlink()
            return
        expected = remote.sha256 or _noted(path)
        # without a checksum, nothing shows that two halves belong to the same file, so start over
        have = file.seek(0, os.SEEK_END) if expected is not None else 0
        with _response(remote.url, have) as response:
            if response is not None:
                goes_on = f"bytes {have}-"
                resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(goes_on)
                if expected is None and not _tells_its_end(response):
                    raise _Permanent(
                        "the server does not say how long the file is, and no checksum is known, so a truncated file "
                        "would look complete"
                    )
                _receive(response, file, have if resumed else 0, remote.name)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if expected is not None and digest != expected:
            file.truncate(0)
            raise _Damaged(f"the wrong file arrived: sha256 {digest[:16]}..., expected {expected[:16]}...")
        if remote.sha256 is None:
            _note(path, digest, file.tell(), remote.url)
        if fcntl is None:
            file.close()  # Windows does not rename open files
        os.replace(part, path)
    sync_folder(path.parent)


@contextmanager
def _owned(part: Path) -> Iterator[Any]:
    """A partial file, open in one process at a time; removed if it stays empty."""
    while True:
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        if fcntl is None:
            break
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(part)):
                break
        file.close()  # while we waited, the other process finished it
    try:
        with file:
            yield file
    finally:
        with suppress(FileNotFoundError):
            if part.stat().st_size == 0:
                part.unlink()


class _response:  # noqa: N801
    """A server's response to a request for the rest of a file; None if we already have all of it."""

    def __init__(self, url: str, start: int):
        self.url, self.start, self.response = url, start, None

    def __enter__(self) -> Any:
        headers = {"User-Agent": "rankrls"} | ({"Range": f"bytes={self.start}-"} if self.start else {})
        try:
            opener = urllib.request.build_opener(_PromptHTTP, _PromptHTTPS)
            request = urllib.request.Request(self.url, headers=headers)
            self.response = opener.open(request, timeout=limits.stalled_seconds)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and self.start:  # we already have the whole file
                return None
            if error.code in (408, 425, 429) or error.code >= 500:
                raise OSError(f"the server answers {error.code} {error.reason}") from None
            raise _Permanent(f"the server answers {error.code} {error.reason}") from None
        return self.response

    def __exit__(self, *_: Any) -> None:
        if self.response is not None:
            self.response.close()


class _Prompt(http.client.HTTPConnection):
    """A connection with a time limit for all headers: a timeout per byte would let a server send them for ever."""

    def getresponse(self) -> http.client.HTTPResponse:
        late, sock, seconds = threading.Event(), self.sock, 2 * limits.stalled_seconds

        def hang_up() -> None:
            late.set()
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, hang_up)
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()
        except (OSError, http.client.HTTPException):
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        if late.is_set():  # headers cut short by closing the connection look complete
            raise OSError(f"the server had not sent its headers after {seconds:.3g} seconds")
        return response


class _PromptSecurely(_Prompt, http.client.HTTPSConnection):
    """The same over TLS."""


class _PromptHTTP(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Prompt, req)


class _PromptHTTPS(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_PromptSecurely, req)


def _receive(response: HTTPResponse, file: BinaryIO, start: int, label: str) -> None:
    """Write what follows the first `start` bytes of a file; raise an error unless all of it arrives."""
    total = _end(response, start)
    progress = Progress(f"download of {label}", total, "bytes", done=start)
    file.seek(start)
    file.truncate()
    for block in _blocks(response):
        file.write(block)
        progress.add(len(block))
    file.flush()
    os.fsync(file.fileno())
    got = file.tell()
    if total is not None and got < total:
        raise OSError(f"the connection ended after {got:,} of {total:,} bytes")


def _end(response: HTTPResponse, start: int) -> int | None:
    """The size of the file, computed from the length of the response; None if the server does not give it."""
    length = response.headers.get("Content-Length", "").strip()
    return start + int(length) if length.isascii() and length.isdecimal() else None


def _tells_its_end(response: HTTPResponse) -> bool:
    """True if a complete response differs from a broken connection, by its length or its last chunk."""
    chunked = response.headers.get("Transfer-Encoding", "").strip().lower() == "chunked"
    return chunked or _end(response, 0) is not None


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    """Yield bytes as they arrive; an error if the server is too slow."""
    since, arrived = time.monotonic(), 0
    while block := response.read1(CHUNK):
        yield block
        arrived += len(block)
        passed = time.monotonic() - since
        if passed > limits.stalled_seconds:
            if arrived < SLOWEST * passed:
                raise OSError(f"the server sent {arrived:,} bytes in {passed:.0f} seconds, which is too slow")
            since, arrived = time.monotonic(), 0


def _notes(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _noted(path: Path) -> str | None:
    """The checksum recorded at an earlier download, for files published without one."""
    try:
        return json.loads(_notes(path).read_text())["sha256"]
    except (OSError, ValueError, KeyError):
        return None


def _note(path: Path, digest: str, size: int, url: str) -> None:
    with replacing(_notes(path)) as file:
        file.write(json.dumps({"url": url, "bytes": size, "sha256": digest}, indent=1).encode())


# ---------------------------------------------------------------- archives


def unpacked(archive: Path, folder: Path) -> Path:
    """The folder with the unpacked content of a zip or tar file; it is complete or does not exist."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as content:
                for name in content.namelist():
                    _refuse_outside(archive, name)
                content.extractall(beside)
        else:
            with tarfile.open(archive) as tar:
                for member in tar.getmembers():
                    _refuse_outside(archive, member.name)
                tar.extractall(beside, filter="data")
        os.chmod(beside, 0o755)
        _put(beside, folder)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise DownloadError(
            f"{archive} is not a zip or tar file, or damaged ({error}): delete it and try again"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _put(beside: Path, folder: Path) -> None:
    """Rename a folder; if another process has created the target meanwhile, keep that."""
    try:
        os.replace(beside, folder)
    except OSError:
        if not folder.exists():
            raise


def _refuse_outside(archive: Path, name: str) -> None:
    """Raise an error if a file of an archive would be written outside its folder."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts):
        raise DownloadError(f"{archive} holds {name!r}, which would be written outside its folder: not unpacked")
