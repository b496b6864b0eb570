"""Open files, with compression detected from the content, and write files that are never left half written."""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import io
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from .memory import check_memory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Source = Any  # a path, or a file open for reading (or writing) bytes

LINE_BYTES = 1 << 24  # longest line allowed: about a million values
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


def name_of(source: Source) -> str:
    """The name of a file for messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "the input"))


def size_of(source: Source) -> int:
    """The bytes of a file as it is stored; zero if it is no file on a disk."""
    try:
        return os.stat(source if isinstance(source, (str, os.PathLike)) else source.fileno()).st_size
    except (AttributeError, OSError, ValueError):
        return 0


@contextmanager
def opened(source: Source) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed if they are gzip, bzip2, xz or zstandard; a file passed open stays open."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file, _decompressed(file, name_of(source)) as plain:
            yield plain
        return
    if isinstance(source, io.TextIOBase):
        raise TypeError(f"{name_of(source)} is open as text: open it in binary mode, or give the path")
    file = source if hasattr(source, "peek") else io.BufferedReader(source)
    try:
        with _decompressed(file, name_of(source)) as plain:
            yield plain
    finally:
        if file is not source:
            file.detach()


def endless(name: str, line: int) -> ValueError:
    """The error for a line longer than any line of a table should be."""
    return ValueError(f"{name}, line {line}: more than {LINE_BYTES:,} bytes without an end: is it a text file?")


def lines(file: Any, name: str) -> Iterator[Any]:
    """The lines of a file, text or bytes; an endless line (a small gzip can hold one) is an error."""
    for number in count(1):
        line = file.readline(LINE_BYTES)
        if len(line) == LINE_BYTES:
            raise endless(name, number)
        if not line:
            return
        yield line


def all_bytes(file: BinaryIO, name: str) -> bytes:
    """The rest of a file; an error if it would take more than a quarter of the free memory, as a small gzip can."""
    pieces, size = [], 0
    while piece := file.read(1 << 24):
        pieces.append(piece)
        size += len(piece)
        check_memory(4 * size, f"{name} as text", "split it, or drop what you do not need")
    return b"".join(pieces)


@contextmanager
def _decompressed(file: Any, name: str) -> Iterator[BinaryIO]:
    start = file.peek(6)[:6]
    kind = next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")
    if not kind:
        yield file
        return
    with _coded(file, kind, "rb", name) as plain:
        try:
            yield plain
        except Exception as error:
            if not _is_damage(error):
                raise
            raise OSError(f"{name} is damaged or cut short: {error}") from error


def _is_damage(error: Exception) -> bool:
    """True if a decompressor raised the error: operating system errors carry a number, those of bz2 do not."""
    if isinstance(error, OSError):
        return error.errno is None and type(error) in (OSError, gzip.BadGzipFile)
    return isinstance(error, (EOFError, lzma.LZMAError, zlib.error)) or type(error).__name__ == "ZstdError"


def _coded(file: Any, suffix: str, mode: Any, name: str) -> Any:
    """A reader or writer for the compression that a suffix names."""
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file, mode=mode, mtime=0)
    if suffix == ".bz2":
        return bz2.BZ2File(file, mode)
    if suffix == ".xz":
        return lzma.LZMAFile(file, mode)
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"{name} is compressed with zstandard: pip install 'rankrls[zstd]', or decompress it first"
        ) from None
    return zstandard.open(file, mode, closefd=False)


@contextmanager
def written(target: Source) -> Iterator[BinaryIO]:
    """A file to write, compressed as its suffix says; it appears under its name once everything is on disk."""
    if not isinstance(target, (str, os.PathLike)):
        yield target
        return
    path = Path(target)
    with replacing(path) as file:
        if path.suffix not in _MAGIC.values():
            yield file
            return
        with _coded(file, path.suffix, "wb", str(path)) as plain:
            yield plain


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of the operating system that do not: a full disk fails in the middle of a write."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a temporary file and move it into place: readers see either the whole old file or the whole new one.

    A symbolic link stays a link and its target is replaced; devices and pipes are written directly. An existing file
    keeps its permissions, and a read-only file is not replaced. Leftovers of a killed write are removed by the next.
    """
    with _naming(path), _replacing(path.resolve()) as file:
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file that then replaces the target; to devices and pipes, directly."""
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder: give the name of a file in it")
        with open(path, "wb") as file:
            yield file
        return
    mode = _mode_of(path)
    _remove_leftovers(path)
    handle, beside = _part(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)  # mkstemp lets only the owner read it
        os.replace(beside, path)
        sync_folder(path.parent)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _part(path: Path) -> tuple[int, str]:
    """A new temporary file beside another, locked while open: without a lock its writer has died."""
    while True:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with suppress(OSError):  # the file system has no locks
            _lock(handle)
        if os.path.exists(beside):
            return handle, beside
        os.close(handle)  # another process took it for a leftover and removed it before we locked it


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files left behind by killed processes, except those still being written."""
    for name in glob.glob(f".{glob.escape(path.name)}.*.part", root_dir=path.parent) if fcntl is not None else ():
        part = path.parent / name
        with suppress(OSError):  # in use, or already gone
            handle = os.open(part, os.O_RDWR)
            try:
                _lock(handle, wait=False)
                part.unlink()
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool = True) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _mode_of(path: Path) -> int:
    """The permissions of a file, or those a new file would get."""
    if path.exists():
        mode = path.stat().st_mode & 0o7777
        if not mode & 0o222 or not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "is read-only and is not replaced", str(path))
        return mode
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def sync_folder(folder: Path) -> None:
    """Make a rename survive a crash, where the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
