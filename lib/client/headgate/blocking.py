"""The blocking face: what programs without an event loop use. Safe from several threads, and inside a running loop too."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from headgate import aio
from headgate.coordinators import addresses_of
from headgate.definition import Columns, Listing, SchemaLike, TableInfo
from headgate.encoding import Compression
from headgate.entries import Acks, Level
from headgate.loop_thread import LoopThread
from headgate.rows import RowFormat, operation_type
from headgate.status import Status
from headgate.system import System
from headgate.transport import Tls


def connect(
    address: str | Sequence[str],
    *,
    token: str | None = None,
    tls: Tls | bool | None = None,
    timeout: float = aio.DEFAULT_TIMEOUT,
    compression: Compression = None,
    in_flight_bytes: int = aio.DEFAULT_IN_FLIGHT,
    system: System | None = None,
) -> "Headgate":
    """Connects to a cluster.

    ``address``: one coordinator or several (``"a:7070,b:7070"`` or a list); any of them does. ``token`` is sent as a bearer
    token, in the clear without ``tls``; ``tls=True`` trusts the system's authorities, ``headgate.Tls`` says more. ``timeout``
    (seconds) is how long a call waits, through breaks and takeovers, when it names no other. ``compression="lz4"`` saves about
    40 % on the wire for 0.7 ms of CPU a MB. ``in_flight_bytes`` is how much one channel keeps in memory until readers see it
    (rule CH7), at most what the cluster allows; at half of it a checkpoint is asked for, so less means more and smaller files.

    Nothing is sent before the first call. Raises InvalidArgumentError, OSError (a TLS file)::

        with headgate.connect("localhost:7070") as hg:
            print(hg.status())
    """
    addresses = addresses_of(address)

    def make() -> aio.Headgate:
        return aio.connect(
            addresses,
            token=token,
            tls=tls,
            timeout=timeout,
            compression=compression,
            in_flight_bytes=in_flight_bytes,
            system=system,
        )

    return Headgate(LoopThread(make))


class Headgate:
    """A connection to a cluster. Made by ``connect``; leaving the ``with`` block closes it and its channels, without waiting."""

    def __init__(self, thread: LoopThread[aio.Headgate]) -> None:
        self._thread = thread
        self._core = thread.resource

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; channels that are still open end as in ``channel.close(None)``."""
        self._thread.close()

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        key: Columns,
        ordering: str | None = None,
        partition_by: Columns = None,
        buckets: int = 0,
        hive_style: bool = False,
        exist_ok: bool = False,
    ) -> "Table":
        """Creates a table; with ``exist_ok`` one of the same definition is a success.

        ``schema``: a pyarrow schema, pairs of name and type (``[("id", "int64"), ("at", datetime)]``), or a dataclass.
        ``ordering``: the column whose larger value wins; without one the later write does. ``buckets`` (0 takes 8) is the number
        of file groups a partition; it cannot be changed. Raises TableExistsError, SchemaError, InvalidArgumentError,
        UnavailableError::

            orders = hg.create_table("orders", [("id", int), ("day", str), ("at", datetime)],
                                     key="id", ordering="at", partition_by="day", exist_ok=True)
        """
        table = self._core.create_table(
            name,
            schema,
            key=key,
            ordering=ordering,
            partition_by=partition_by,
            buckets=buckets,
            hive_style=hive_style,
            exist_ok=exist_ok,
        )
        return Table(self._thread, self._thread.run(table))

    def table(self, name: str) -> "Table":
        """A table that exists: ``hg.table("orders")``. Raises TableNotFoundError, UnavailableError."""
        return Table(self._thread, self._thread.run(self._core.table(name)))

    def tables(self) -> list[TableInfo]:
        """All tables by name but the unreadable ones: ``[info.name for info in hg.tables()]``. Raises UnavailableError."""
        return self._thread.run(self._core.tables())

    def unreadable_tables(self) -> list[str]:
        """Names of tables whose definition cannot be read now: ``status(name)`` says why. Raises UnavailableError."""
        return self._thread.run(self._core.unreadable_tables())

    def listing(self) -> Listing:
        """Both at once: ``hg.listing().tables``. Raises UnavailableError."""
        return self._thread.run(self._core.listing())

    def status(self, table: str = "") -> Status:
        """How the cluster is: ``hg.status().writers``. With ``table``, that one alone. Raises UnavailableError."""
        return self._thread.run(self._core.status(table))


class Table:
    """A table that takes rows. ``info`` is its definition: ``hg.table("orders").info.schema``."""

    def __init__(self, thread: LoopThread[aio.Headgate], core: aio.Table) -> None:
        self._thread = thread
        self._core = core
        self.info = core.info

    def channel(self, name: str) -> "Channel":
        """Opens the channel of this name, as its only producer: an older one gets ChannelTakenOverError (rule CH4).

        The name survives restarts, and so does ``committed_offset``. Rows of one channel are committed in their order; use one
        for each independent source. Raises UnavailableError, ChannelForbiddenError, TableQuarantinedError::

            with orders.channel("loader-1") as ch:
                ch.upsert(rows)
        """
        channel = self._core.channel(name)
        return Channel(self._thread, self._thread.run(channel.open()))


class Receipt:
    """That a call's rows were taken. ``offset`` is that of the last one."""

    def __init__(self, channel: "Channel", offset: int) -> None:
        self.offset = offset
        self._channel = channel

    def wait(self, level: Level = "durable", *, timeout: float | None = None) -> None:
        """Returns when these rows, and so all before them, have reached ``level``: ``ch.upsert(rows).wait("durable")``.

        Asks for nothing: checkpoints come on time, on bytes, or by ``flush``. Raises as ``Channel.flush``.
        """
        self._channel.wait(self.offset, level, timeout=timeout)


class Channel:
    """One producer's ordered stream of rows into a table; made by ``Table.channel``.

    Calls return as soon as the rows are taken; the channel sends them, and sends them again after a break, so that each is
    committed exactly once. How far they are is in ``acks``; ``flush`` waits. Leaving the ``with`` block flushes to ``queryable``
    and closes; leaving it by an exception closes at once, and what is not committed may or may not be later.

    **Offsets.** Each row has one: the count of rows ever given to this channel, unless calls give their own, such as a source's
    positions. After a restart ``committed_offset`` says where to go on::

        ch = orders.channel("loader-1")
        for number, row in enumerate(source, 1):
            if number > ch.committed_offset:
                ch.upsert([row])

    **A refused batch** (a null key, a value that cannot be a folder name, …) stops the channel (rule CH2): rows behind it must
    not be committed before it. The next call raises BatchRefusedError and takes nothing, again and again, until either
    ``ch.upsert(better, offset=error.offset)`` puts other rows in its place, or ``ch.skip()`` gives it up. Rows that were taken
    behind it before are kept and sent then. Calls that were sent together are cut apart first, so that it is the one at fault.
    """

    def __init__(self, thread: LoopThread[aio.Headgate], core: aio.Channel) -> None:
        self.name = core.name
        self._thread = thread
        self._core = core
        self._shared = core.runner.channel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close("queryable" if kind is None else None)

    @property
    def acks(self) -> Acks:
        """The offsets up to which rows are received, durable and queryable: ``ch.acks.durable``."""
        return self._core.acks

    @property
    def committed_offset(self) -> int:
        """Rows up to here are committed, by this producer or an earlier one; a producer goes on behind it."""
        return self._core.committed_offset

    @property
    def offset(self) -> int:
        """That of the last row taken. After an error in a call of many rows: go on with the rows behind it."""
        return self._core.offset

    def upsert(self, rows: Any, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        """Inserts rows, or replaces those of the same partition and key.

        ``rows``: dicts or dataclasses; a pyarrow Table, RecordBatch or RecordBatchReader; a pandas or polars DataFrame; anything
        with ``__arrow_c_stream__``. Every column is needed. ``offset`` is that of the last row; without it rows are counted. Rows
        with an own offset travel as one batch of at most 7.5 MB, since a source's positions inside it are not known.

        Waits while ``in_flight_bytes`` are taken and not queryable. Raises RowError, SchemaError, TooLargeError (nothing of what
        is in memory was taken); BatchRefusedError; NotCommittedError when there was no room for ``timeout`` seconds (``offset``
        says what was taken); GiveUp::

            ch.upsert([{"id": 1, "day": "2026-01-01", "at": now}])
            ch.upsert(pl.read_parquet("orders.parquet"))
            ch.upsert(message_rows, offset=message.position)
        """
        return self._append(self._core.formats.upsert, rows, offset, timeout)

    def delete(self, rows: Any, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        """Deletes by partition and key. Rows need the record key, partition and ordering columns (rule DE1); others are ignored.

        As ``upsert`` in everything else::

            ch.delete([{"id": 1, "day": "2026-01-01", "at": now}])
        """
        return self._append(self._core.formats.delete, rows, offset, timeout)

    def write(
        self, rows: Any, offset: int | None = None, *, operation_column: str = "op", timeout: float | None = None
    ) -> Receipt:
        """Upserts and deletes mixed, in their order: the column says "upsert" or "delete", or 1 or 2.

        A row that is deleted needs what ``delete`` needs; its other columns may be null or, in dicts, missing::

            ch.write([{"op": "upsert", **order}, {"op": "delete", "id": 1, "day": "2026-01-01", "at": now}])
        """
        rows, says = operation_type(rows, operation_column)
        return self._append(self._core.formats.mixed(operation_column, says), rows, offset, timeout)

    def skip(self, offset: int | None = None) -> None:
        """Gives up the refused batch for good and, with an ``offset``, what waits behind it up to there.

        When none is refused it moves the channel on to ``offset``, as if a source's rows up to there had been sent. Raises
        InvalidArgumentError for an offset inside a batch, or not beyond the last one::

            except headgate.BatchRefusedError as refused:
                save_for_later(refused.rows)
                ch.skip()
        """
        self._shared.skip(offset)

    def flush(self, level: Level = "queryable", *, timeout: float | None = None) -> None:
        """Asks for a checkpoint now and returns when all rows taken so far have reached ``level``.

        ``received``: in one writer's memory, survives nothing. ``durable``: the commit is decided. ``queryable``: readers see
        them. Raises BatchRefusedError, NotCommittedError after ``timeout`` seconds, TableRestoredError, GiveUp::

            ch.flush("durable", timeout=10)
        """
        self._thread.run(self._core.flush(level, timeout=timeout))

    def wait(self, offset: int, level: Level = "durable", *, timeout: float | None = None) -> None:
        """Returns when rows up to ``offset`` have reached ``level``; asks for nothing. Raises as ``flush``."""
        self._thread.run(self._core.wait(offset, level, timeout=timeout))

    def close(self, level: Level | None = "queryable", *, timeout: float | None = None) -> None:
        """Flushes to ``level`` and lets the channel go; ``close(None)`` does not wait. Raises as ``flush``; it is closed then."""
        self._thread.run(self._core.close(level, timeout=timeout))

    def _append(self, kind: RowFormat, rows: Any, offset: int | None, timeout: float | None) -> Receipt:
        """Rows become Arrow on the caller's thread; the event loop is asked only when there is no room."""
        shared = self._shared
        shared.check(offset)
        taken = shared.state.taken if offset is None else offset
        for cut in aio.cut_up(self._core.encoder, kind, rows, offset):
            now = shared.try_take(kind, cut, offset)
            if now is None:
                now = self._thread.run(self._core.runner.take(kind, cut, offset, self._core.seconds(timeout)))
            taken = now
        return Receipt(self, taken)
