"""The audit log: a JSON object a line for each call that changes something, and each that is refused. No rows, no secrets."""

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog

from headgate_runtime.access.identity import Identity
from headgate_runtime.lifecycle import StartError
from headgate_runtime.world import Clock

STDERR: Final = "stderr"
NONE: Final = "none"

REFUSALS_A_SECOND: Final = 50
"""Lines about refused calls; of more, a line says how many. A stranger must not fill the disk."""
_WAITING: Final = 10_000
"""Lines that wait for the disk; more are lost, and counted."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line. ``method``: "/package.Service/Method". ``outcome``: "OK", or the code that the caller got, without its prefix.

    ``identity`` None: unknown. ``refused``: for the want of an identity or a right.
    """

    method: str
    outcome: str
    identity: Identity | None = None
    peer: str = ""
    table: str = ""
    channel: str = ""
    refused: bool = False
    details: Mapping[str, object] = field(default_factory=dict)


class AuditLog(Protocol):
    """Where lines go."""

    def write(self, entry: AuditEntry) -> None:
        """Returns at once."""

    def close(self) -> None:
        """Waits until all lines are written."""


class NoAudit:
    """Keeps nothing."""

    def write(self, entry: AuditEntry) -> None:
        pass

    def close(self) -> None:
        pass


class JsonLines:
    """Appends to a file, which may be moved away at any time and is then made anew, or to stderr. On a thread of its own.

    Raises OSError if the file cannot be opened. What cannot be written later is counted, and the service log says why.
    """

    def __init__(self, place: str, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._file = -1 if place == STDERR else _opened(place)
        self._thread = ThreadPoolExecutor(1, "audit")
        # Each counter has one thread that writes it.
        self._given, self._done = 0, 0
        self._left_out, self._failed, self._reported = 0, 0, 0
        self._second, self._refusals = 0, 0
        self._closed = False

    def write(self, entry: AuditEntry) -> None:
        if self._closed:
            return
        if self._given - self._done >= _WAITING or (entry.refused and not self._has_room(self._clock.now_ms() // 1000)):
            self._left_out += 1
            return
        self._given += 1
        missing = self._left_out + self._failed - self._reported
        self._reported += missing
        line = json.dumps({"time": self._time(), **_fields(entry), **({"lines_left_out": missing} if missing else {})})
        self._thread.submit(self._append, line.encode() + b"\n")

    def flush(self) -> None:
        """Waits until the lines so far are written, or lost."""
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """Waits for the lines so far. A call that ends later leaves none."""
        self._closed = True
        self._thread.shutdown()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _has_room(self, second: int) -> bool:
        if second != self._second:
            self._second, self._refusals = second, 0
        self._refusals += 1
        return self._refusals <= REFUSALS_A_SECOND

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")

    def _append(self, line: bytes) -> None:
        try:
            if self._place == STDERR:
                sys.stderr.write(line.decode())
                sys.stderr.flush()
            else:
                self._reopen_moved()
                os.write(self._file, line)
        except OSError as error:
            self._failed += 1
            _log.error("a line of the audit log is lost", place=self._place, error=str(error))
        finally:
            self._done += 1

    def _reopen_moved(self) -> None:
        try:
            there = os.stat(self._place)
        except FileNotFoundError:
            there = None
        if there is None or not os.path.samestat(there, os.fstat(self._file)):
            newer = _opened(self._place)
            os.close(self._file)
            self._file = newer


def audit_log(place: str, clock: Clock) -> AuditLog:
    """By the setting ``audit_log``. Raises StartError."""
    try:
        return NoAudit() if place == NONE else JsonLines(place, clock)
    except OSError as error:
        raise StartError.of_file("audit_log", place, error, "write") from error


def _opened(place: str) -> int:
    return os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _fields(entry: AuditEntry) -> Mapping[str, object]:
    found: dict[str, object] = {"principal": entry.identity.principal if entry.identity else None}
    if entry.identity is not None:
        found["credential"] = entry.identity.credential
    found |= {"peer": entry.peer, "method": entry.method.removeprefix("/")}
    found |= {name: value for name, value in (("table", entry.table), ("channel", entry.channel)) if value}
    return found | {"outcome": entry.outcome} | ({"details": entry.details} if entry.details else {})
