"""The compactors with a stream here. Hands operations out: tables take turns, and the compactor with most capacity is first."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from headgate_coordinator.core.operations import Attempt
from headgate_coordinator.streams.stream import Outbox
from headgate_proto.cluster.v1 import compaction_pb2 as wire
from headgate_runtime.errors import UnknownMessageError

QUEUED_ORDERS = 1024
"""Orders that may wait for one compactor. For a compactor that reads its stream, none wait."""


class CompactorSession(Outbox[wire.WorkResponse]):
    """One stream. ``free``: operations that it would take now. ``attempts``: (table, epoch, attempt) of its work for us."""

    def __init__(self, process: str, host: str) -> None:
        super().__init__(QUEUED_ORDERS, "it does not read its stream")
        self.process = process
        self.host = host
        self.free = 0
        self.leaving = False
        self.released = False
        self.attempts: set[tuple[str, int, Attempt]] = set()


class OperationSource(Protocol):
    """A table that may have operations to hand out."""

    @property
    def wants_compactor(self) -> bool:
        """Whether an offer would be taken now."""

    def offer_capacity(self, session: CompactorSession) -> None:
        """Gives the compactor one operation, if any waits that it may take."""

    def attempt_reported(self, session: CompactorSession, attempt: Attempt, report: wire.WorkRequest) -> None:
        """The compactor has finished, failed or returned the attempt."""

    def attempt_progressed(self, session: CompactorSession, attempt: Attempt, progress: wire.AttemptProgress) -> None:
        """Notes the progress of an attempt."""

    def compactor_lost(self, session: CompactorSession) -> None:
        """Its stream has ended."""


class OperationSources(Protocol):
    """The tables of this coordinator."""

    def operation_sources(self) -> Mapping[str, OperationSource]:
        """Returns the tables that are owned now, by name."""

    def operation_source(self, table: str, epoch: int) -> OperationSource | None:
        """Returns the table if it is owned under that epoch, else None."""


class Compactors:
    """All sessions by process id, in the order of their hellos."""

    def __init__(self, tables: OperationSources) -> None:
        self._tables = tables
        self._sessions: dict[str, CompactorSession] = {}
        self._last = ""
        self._matching = False

    def __iter__(self) -> Iterator[CompactorSession]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, process: str) -> CompactorSession | None:
        """Returns the session of a process, None when its stream has ended."""
        return self._sessions.get(process)

    def add_compactor(self, process: str, host: str) -> CompactorSession:
        """Registers a compactor at its hello. Ends an older stream of the same process."""
        if older := self._sessions.get(process):
            self.remove_compactor(older, "the compactor came back")
        session = self._sessions[process] = CompactorSession(process, host)
        return session

    def remove_compactor(self, session: CompactorSession, why: str) -> None:
        """Removes a compactor whose stream has ended. Does nothing to a newer session of the same process."""
        session.end_stream(why)
        if self._sessions.get(session.process) is session:
            del self._sessions[session.process]
            for table in self._tables.operation_sources().values():
                table.compactor_lost(session)
            self.hand_out_operations()

    def handle_compactor_message(self, session: CompactorSession, message: wire.WorkRequest) -> None:
        """Handles one message behind the hello; drops those of a stream that was replaced or cut. Raises UnknownMessageError."""
        if session.ended is not None:
            return
        match message.WhichOneof("message"):
            case "ready":
                session.free = message.ready.operations
                self.hand_out_operations()
            case "heartbeat":
                for progress in message.heartbeat.attempts:
                    if table := self._tables.operation_source(progress.attempt.table, progress.attempt.epoch):
                        table.attempt_progressed(session, attempt_of(progress.attempt), progress)
            case "finished":
                self._report(session, message.finished.attempt, message)
            case "failed":
                self._report(session, message.failed.attempt, message)
            case "returned":
                self._report(session, message.returned.attempt, message)
            case "leave":
                session.leaving = True
                self._free(session)
            case "hello" | "part" | None:
                raise UnknownMessageError("a message of a compactor behind its hello")

    def hand_out_operations(self) -> None:
        """Gives waiting operations to free compactors."""
        if self._matching:
            return
        self._matching = True
        try:
            while (session := self._freest()) and (table := self._next_table()):
                session.free -= 1
                table.offer_capacity(session)
        finally:
            self._matching = False

    def run_attempt(self, session: CompactorSession, order: wire.RunAttempt) -> None:
        """Sends an attempt to its compactor."""
        session.attempts.add(_name(order.attempt))
        session.send(wire.WorkResponse(run=order))

    def drop_attempt(self, process: str, attempt: wire.Attempt) -> None:
        """Stops an attempt, if its compactor still works on it."""
        session = self.get(process)
        if session is not None and _name(attempt) in session.attempts:
            session.attempts.discard(_name(attempt))
            session.send(wire.WorkResponse(drop=wire.DropAttempt(attempt=attempt)))
            self._free(session)

    def _report(self, session: CompactorSession, attempt: wire.Attempt, message: wire.WorkRequest) -> None:
        session.attempts.discard(_name(attempt))
        if table := self._tables.operation_source(attempt.table, attempt.epoch):
            table.attempt_reported(session, attempt_of(attempt), message)
        self._free(session)

    def _free(self, session: CompactorSession) -> None:
        """Releases a compactor that leaves once it has none of our attempts."""
        if session.leaving and not session.released and not session.attempts:
            session.released = True
            session.send(wire.WorkResponse(released=wire.CompactorReleased()))

    def _freest(self) -> CompactorSession | None:
        ready = [each for each in self._sessions.values() if each.free and not each.leaving and each.ended is None]
        return max(ready, key=lambda each: each.free, default=None)

    def _next_table(self) -> OperationSource | None:
        """Returns the next table by name, in turns: each table gets one compactor before any gets a second."""
        wanting = {name: table for name, table in self._tables.operation_sources().items() if table.wants_compactor}
        if not wanting:
            return None
        self._last = min((name for name in wanting if name > self._last), default=min(wanting))
        return wanting[self._last]


def attempt_of(attempt: wire.Attempt) -> Attempt:
    """Returns the attempt in the core's type."""
    return Attempt(attempt.instant, attempt.operation, attempt.number)


def _name(attempt: wire.Attempt) -> tuple[str, int, Attempt]:
    return attempt.table, attempt.epoch, attempt_of(attempt)
