"""The writers with a control stream here.

The stream is the registration (rule RO8): a writer is registered from its hello to the end of that stream, and messages of an
older stream of the same process are dropped.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from headgate_coordinator.streams.stream import Outbox
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import UnknownMessageError, rpc_error

QUEUED_ORDERS = 16_384
"""Orders that may wait for one writer. None wait for a writer that reads; one that does not is evicted before it costs much
memory."""


class WriterListener(Protocol):
    """Gets the events of writers: the tables of this coordinator."""

    def writer_joined(self, session: "WriterSession") -> None:
        """A writer said hello."""

    def writer_lost(self, session: "WriterSession", why: str) -> None:
        """Its stream has ended."""

    def writer_leaving(self, session: "WriterSession") -> None:
        """The writer drains."""

    def load_reported(self, session: "WriterSession", table: str, uncommitted_bytes: int) -> None:
        """A heartbeat reported the writer's uncommitted bytes of the table."""

    def table_reported(self, session: "WriterSession", report: wire.TableReport) -> None:
        """The writer sent a report about one table."""


class WriterSession(Outbox[wire.ControlResponse]):
    """One control stream. ``pending``: tables that have not released the writer since it sent its leave. ``loads``,
    ``lags``: uncommitted bytes by table, and offsets by table and channel, in its last heartbeat.

    ``address``: where clients reach it; ``exchange_address``: where other writers do, by default the same. ``identity``: the name
    in its certificate; "" without one, or with one that names the kind of service alone.
    """

    def __init__(self, process: str, address: str, exchange_address: str = "", identity: str = "") -> None:
        super().__init__(QUEUED_ORDERS, "it does not read its control stream")
        self.process = process
        self.address = address
        self.exchange_address = exchange_address or address
        self.identity = identity
        self.leaving = False
        self.released = False
        self.pending: set[str] = set()
        self.loads: dict[str, int] = {}
        self.lags: dict[str, Mapping[str, int]] = {}

    @property
    def uncommitted_bytes(self) -> int:
        """Arrow bytes of all tables in the writer's last heartbeat."""
        return sum(self.loads.values())


def _addresses(session: WriterSession) -> set[str]:
    return {session.address, session.exchange_address}


class Writers:
    """All sessions by process id, in the order of their hellos."""

    def __init__(self, watcher: WriterListener) -> None:
        self._watcher = watcher
        self._sessions: dict[str, WriterSession] = {}
        self._asked = 0

    def __iter__(self) -> Iterator[WriterSession]:
        return iter(list(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, process: str) -> WriterSession | None:
        """Returns the session of a process, None when its stream has ended."""
        return self._sessions.get(process)

    def add_writer(self, process: str, address: str, exchange_address: str = "", identity: str = "") -> WriterSession:
        """Registers a writer at its hello. Ends older streams of the same process, or of one that had its address.

        Raises RpcError if such a stream is that of another identity: a false writer with a certificate of its own cannot push
        others out.
        """
        session = WriterSession(process, address, exchange_address, identity)
        replaced = [each for each in self if each.process == process or _addresses(each) & _addresses(session)]
        if others := sorted({each.identity for each in replaced} - {identity}):
            raise rpc_error(
                errors_pb2.CODE_UNAVAILABLE,
                f"the address or the process id is that of another writer: {others[0] or 'one without a name of its own'}",
                "Give each writer an address of its own, or wait until the other has ended.",
            )
        for older in replaced:
            self.remove_writer(older, "the writer came back")
        self._sessions[process] = session
        self._watcher.writer_joined(session)
        return session

    def remove_writer(self, session: WriterSession, why: str) -> None:
        """Removes a writer whose stream has ended. Does nothing to a newer session of the same process."""
        session.end_stream(why)
        if self._sessions.get(session.process) is session:
            del self._sessions[session.process]
            self._watcher.writer_lost(session, session.ended or why)

    def handle_writer_message(self, session: WriterSession, message: wire.ControlRequest) -> None:
        """Handles one message behind the hello; drops those of a stream that was replaced or cut. Raises UnknownMessageError."""
        if session.ended is not None:
            return
        match message.WhichOneof("message"):
            case "heartbeat":
                self._take_loads(session, {load.table: load.uncommitted_bytes for load in message.heartbeat.loads})
                session.lags = {load.table: dict(load.lags) for load in message.heartbeat.loads if load.lags}
            case "leave":
                if not session.leaving:
                    session.leaving = True
                    self._watcher.writer_leaving(session)
            case "table":
                self._watcher.table_reported(session, message.table)
            case "hello" | "part" | None:
                raise UnknownMessageError("a message of a writer behind its hello")

    def _take_loads(self, session: WriterSession, loads: Mapping[str, int]) -> None:
        # Writers of the version before name each of their tables.
        held = {table: size for table, size in loads.items() if size}
        # Also without a change: rows that were dropped and sent again may have as many bytes as before. But 0 only once: it is
        # never raised here, and each report makes the table's core think.
        for table in [*held, *(table for table in session.loads if table not in held)]:
            self._watcher.load_reported(session, table, held.get(table, 0))
        session.loads = held

    def note_detached(self, table: str, process: str | None = None) -> None:
        """Notes that the process (None: every process) has no part in the table any more. The last table releases a writer that
        leaves.
        """
        for session in self:
            if process in (None, session.process):
                session.pending.discard(table)
                self.release_if_free(session)

    def release_if_free(self, session: WriterSession) -> None:
        """Releases a writer that leaves once it has no part in any table of ours."""
        if session.leaving and not session.released and not session.pending:
            session.released = True
            session.send(wire.ControlResponse(released=wire.Released()))

    def lags_of(self, table: str) -> dict[str, int]:
        """Returns by channel how many offsets writers have taken that are not committed, by their last heartbeats."""
        return {channel: lag for session in self for channel, lag in session.lags.get(table, {}).items()}

    def by_load(self) -> list[WriterSession]:
        """Returns the writers that take channels, least loaded first. Equal ones take turns, to spread channels."""
        self._asked += 1
        sessions = [session for session in self if not session.leaving]
        turn = self._asked % max(len(sessions), 1)
        return sorted(sessions[turn:] + sessions[:turn], key=lambda session: session.uncommitted_bytes)
