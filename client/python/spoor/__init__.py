"""Marks changed paths at the spoord of this machine: libspoor for Python.

    with spoor.Client() as client:
        client.mark("bucket/prefix/object")
        client.flush()  # returns once the daemon has acknowledged it

Make a change visible, mark it, flush, and only then report the change as done. All methods of a client may be called by
several threads, and release the interpreter lock while they wait. A client belongs to the process that opened it.
"""

from __future__ import annotations

import ctypes
import enum
import os
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

__all__ = ["Client", "Error", "Kind", "Result", "Stats", "version"]


class Kind(enum.IntEnum):
    """What a path is."""

    DIR = 0  # it may be a directory: marks it and its parents
    FILE = 1  # a file: marks its parents
    TREE = 2  # all below it may have changed


class Result(enum.IntEnum):
    """What a call ended with; those below 0 are raised as an Error."""

    OK = 0
    SPOOLED = 1
    INVALID = -1
    TIMEOUT = -2
    FULL = -3
    REFUSED = -4
    DENIED = -5
    SPOOL_FAILED = -6
    NO_RESOURCES = -7


class Error(Exception):
    """A call that failed: `result` says how, the message why."""

    def __init__(self, result: int, message: str) -> None:
        super().__init__(message)
        self.result = Result(result)


@dataclass(frozen=True)
class Stats:
    """Counts of paths since the client was opened; `cycle` is the daemon's at its last response, 0 before it."""

    acknowledged: int
    ignored: int
    refused: int
    held: int
    spooled: int
    cycle: int


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("socket", ctypes.c_char_p),
        ("token", ctypes.c_char_p),
        ("spool", ctypes.c_char_p),
        ("buffer_max", ctypes.c_uint64),
        ("spool_max", ctypes.c_uint64),
    ]


class _Stats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("acknowledged", ctypes.c_uint64),
        ("ignored", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("held", ctypes.c_uint64),
        ("spooled", ctypes.c_uint64),
        ("cycle", ctypes.c_uint64),
    ]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL("libspoor.so.1")
    pointer = ctypes.c_void_p
    library.spoor_open.argtypes = [ctypes.POINTER(_Options), ctypes.POINTER(pointer)]
    library.spoor_mark.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
    library.spoor_flush.argtypes = [pointer, ctypes.c_int]
    library.spoor_close.argtypes = [pointer, ctypes.c_int]
    library.spoor_get_stats.argtypes = [pointer, ctypes.POINTER(_Stats)]
    library.spoor_last_error.restype = ctypes.c_char_p
    library.spoor_version.restype = ctypes.c_char_p
    return library


_library = _load()


def version() -> str:
    """The version of the library."""
    return str(_library.spoor_version().decode())


def _checked(result: int, reason: bytes | None = None) -> Result:
    if result < 0:
        raise Error(result, (reason or _library.spoor_last_error()).decode(errors="replace"))
    return Result(result)


def _bytes(text: str | os.PathLike[str] | None) -> bytes | None:
    if text is None:
        return None
    name = os.fsencode(text)
    if b"\0" in name:
        raise ValueError("an embedded NUL character")
    return name


class Client:
    """Marks paths, which are relative to the top of a drive. Timeouts are in seconds; what is None has its default."""

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        token: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        buffer_max: int = 0,
        spool_max: int = 0,
    ) -> None:
        self._client: ctypes.c_void_p | None = None
        self._calls: dict[object, int] = {}  # in progress: the thread of each
        self._is_closing = False
        self._changed = threading.Condition()
        self._process = os.getpid()
        options = _Options(
            ctypes.sizeof(_Options), _bytes(socket), _bytes(token), _bytes(spool), buffer_max, spool_max
        )
        client = ctypes.c_void_p()
        _checked(_library.spoor_open(ctypes.byref(options), ctypes.byref(client)))
        self._client = client

    def mark(self, path: str | bytes | os.PathLike[str], kind: Kind = Kind.DIR, timeout: float = 10) -> None:
        """Holds a mark; flush() sends it, if its batch is not full before."""
        name = os.fsencode(path)
        with self._call() as client:
            _checked(_library.spoor_mark(client, name, len(name), kind, _milliseconds(timeout)))

    def mark_many(
        self, paths: Iterable[str | bytes | os.PathLike[str]], kind: Kind = Kind.DIR, timeout: float = 10
    ) -> None:
        """Like mark(), for each path; the timeout is that of each."""
        for path in paths:
            self.mark(path, kind, timeout)

    def flush(self, timeout: float = 10) -> Result:
        """Waits until all marks are acknowledged (OK), or, with a spool, on its disk (SPOOLED)."""
        with self._call() as client:
            return _checked(_library.spoor_flush(client, _milliseconds(timeout)))

    def stats(self) -> Stats:
        """What has happened to the marks of this client."""
        stats = _Stats(ctypes.sizeof(_Stats))
        with self._call() as client:
            _checked(_library.spoor_get_stats(client, ctypes.byref(stats)))
        return Stats(stats.acknowledged, stats.ignored, stats.refused, stats.held, stats.spooled, stats.cycle)

    def close(self, timeout: float = 10) -> Result:
        """Waits for the calls of other threads to end, flushes and closes; raises an Error if marks are lost. Each takes
        the timeout at most. Closing again does nothing."""
        self._check_process()
        milliseconds = _milliseconds(timeout)
        with self._changed:
            self._is_closing = True
            if threading.get_ident() in self._calls.values():  # in a signal handler
                raise Error(Result.INVALID, "a call of this thread is in progress: close the client after it")
            # Interrupted, or too early: the client is still there to be closed.
            if not self._changed.wait_for(lambda: not self._calls, milliseconds / 1000):
                raise Error(Result.TIMEOUT, "calls of other threads are in progress: close the client again")
            if self._client is None:
                return Result.OK
            result = _library.spoor_flush(self._client, milliseconds)
            reason = _library.spoor_last_error()
            client, self._client = self._client, None
            _library.spoor_close(client, 0)
        return _checked(result, reason)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_client", None) is None or self._process != os.getpid():
            return
        try:
            warnings.warn("a spoor.Client was not closed", ResourceWarning, source=self)
        finally:
            _library.spoor_close(self._client, 0)

    @contextmanager
    def _call(self) -> Iterator[ctypes.c_void_p]:
        self._check_process()
        call = object()
        try:
            with self._changed:
                if self._client is None or self._is_closing:
                    raise Error(Result.INVALID, "the client is closed")
                self._calls[call] = threading.get_ident()
            yield self._client
        finally:
            with self._changed:
                self._calls.pop(call, None)
                self._changed.notify_all()

    def _check_process(self) -> None:
        if self._process != os.getpid():  # where another thread of the parent may have held the lock
            raise Error(Result.INVALID, "the client is that of the parent process: open one after a fork")


def _milliseconds(seconds: float) -> int:
    return int(min(max(seconds, 0), 2_000_000) * 1000)  # an int of C
