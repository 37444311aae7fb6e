"""The channels of the blocking SDK."""

from types import TracebackType
from typing import Self

from headgate import aio
from headgate.acks import Acks, Level
from headgate.aio_channel import whole
from headgate.encoding import encode_call
from headgate.errors import RowError, SchemaError
from headgate.loop_thread import LoopThread
from headgate.rows import RowFormat, detect_operation_type


class Receipt:
    """Confirms that a call's rows are buffered. ``offset`` is that of the last one."""

    __slots__ = ("_channel", "offset")

    def __init__(self, channel: "Channel", offset: int) -> None:
        self.offset = offset
        self._channel = channel

    def wait(self, level: Level = "durable", *, timeout: float | None = None) -> None:
        """Returns when these rows, and all before them, have reached ``level``: ``ch.upsert(rows).wait("durable")``.

        It does not ask for a checkpoint; ``flush`` does. Raises as ``Channel.flush``.
        """
        self._channel.wait(self.offset, level, timeout=timeout)


class Channel:
    """One producer's ordered stream of rows into a table, made by ``Table.channel``.

    Calls return as soon as the rows are buffered. The channel sends them, again after a break, so that each row is committed
    exactly once. ``acks`` says how far they are; ``flush`` waits for them. Leaving the ``with`` block flushes to ``queryable``
    and closes. Leaving it by an exception closes at once: rows that are not committed yet may or may not be committed later.

    **Offsets.** Each row has an offset: the count of all rows of this channel so far, unless calls give their own, such as a
    source's positions. After a restart ``committed_offset`` says where to resume::

        ch = orders.channel("loader-1")
        for number, row in enumerate(source, 1):
            if number > ch.committed_offset:
                ch.upsert([row])

    **A refused batch** (a null key, a value that cannot be a folder name, …) stops the channel (rule CH2), because later rows
    must not be committed before it. Every call raises BatchRefusedError and buffers nothing until either
    ``ch.upsert(better, offset=error.offset)`` replaces the batch or ``ch.skip()`` discards it. Rows buffered after it are kept
    and sent then. If several calls travelled in one message, only the call at fault is refused.
    """

    def __init__(self, thread: LoopThread[aio.Headgate], core: aio.Channel) -> None:
        self.name = core.name
        self._thread = thread
        self._core = core
        self._shared = core.runner.channel
        thread.shares(self._shared.lock)

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
        """The offset up to which rows are committed, by this producer or an earlier one; a producer resumes above it."""
        return self._core.committed_offset

    @property
    def offset(self) -> int:
        """The offset of the last buffered row. After an error in a call of many rows, resume with the rows above it."""
        self._check_is_here()
        return self._core.offset

    def upsert(self, rows: object, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        """Inserts rows, or replaces those of the same partition and key.

        ``rows``: dicts, dataclasses, NamedTuples, attrs or pydantic objects; a pyarrow Table, RecordBatch or RecordBatchReader; a
        pandas or polars DataFrame; anything with ``__arrow_c_stream__``. An upsert replaces whole rows: a column that can be
        null may be left out, and is null then. ``headgate.fitting`` says which values fit. Times without a zone are refused in
        Python's rows, and taken for UTC in Arrow data and frames. ``offset`` is that of the last row;
        without it, rows are counted. Rows with an offset of their own travel as one batch of at most 7.5 MB, because the
        positions inside it are unknown.

        A call with one row, or a list of one, only looks whether it fits, and raises if not. Such rows are sent together: when
        they are many, at ``flush``, ``close`` and calls of another kind, and else 5 ms later; where many channels do so, each
        waits its turn, at most 100 ms. So are record batches of one row with the table's own types. Plain tuples hold the
        table's columns in their order.

        In a table whose setting ``headgate.evolve`` is ``add``, rows may bring new columns and fields of structs, and with
        ``add-and-widen`` values that only a wider type holds: the table changes first, as by ``Table.alter``. A column's first
        values say its type. Of a reader the schema counts, and its values widen nothing.

        Waits while the channel's buffer is full. Raises RowError, SchemaError, TooLargeError (of data in memory no row was
        buffered); BatchRefusedError; NotCommittedError after ``timeout`` seconds without room (``ch.offset`` is the last row
        buffered); GiveUp::

            ch.upsert([{"id": 1, "day": "2026-01-01", "at": now}])
            ch.upsert(pa.table({"id": [2], "day": ["2026-01-01"], "at": [now]}))
            ch.upsert(message.rows, offset=message.position)
        """
        return self._append(self._core.formats.upsert, rows, offset, timeout)

    def delete(self, rows: object, offset: int | None = None, *, timeout: float | None = None) -> Receipt:
        """Deletes rows by partition and key. Needs their key, partition and ordering columns (rule DE1); ignores others.

        Otherwise as ``upsert``::

            ch.delete([{"id": 1, "day": "2026-01-01", "at": now}])
        """
        return self._append(self._core.formats.delete, rows, offset, timeout)

    def write(
        self, rows: object, offset: int | None = None, *, operation_column: str = "op", timeout: float | None = None
    ) -> Receipt:
        """Upserts and deletes rows in their order: ``operation_column`` holds "upsert" or "delete", or 1 or 2.

        A deleted row needs the columns that ``delete`` needs; its others may be null or, in dicts, missing::

            ch.write([{"op": "upsert", **order}, {"op": "delete", "id": 1, "day": "2026-01-01", "at": now}])
        """
        rows, kind = detect_operation_type(rows, operation_column)
        return self._append(self._core.formats.mixed(operation_column, kind), rows, offset, timeout)

    def skip(self, offset: int | None = None) -> None:
        """Discards the refused batch for good and, with ``offset``, all batches up to there.

        Without a refused batch it advances the channel to ``offset``, as if a source's rows up to there had been sent. Raises
        InvalidArgumentError for an offset inside a batch, or not above the last one::

            try:
                ch.flush()
            except headgate.BatchRefusedError as refused:
                save_for_later(refused.rows)
                ch.skip()
        """
        self._check_is_here()
        self._shared.skip(whole(offset))

    def flush(self, level: Level = "queryable", *, timeout: float | None = None) -> None:
        """Asks for a checkpoint now and returns when all rows buffered so far have reached ``level``.

        ``received``: they are in one writer's memory and survive no crash. ``durable``: their commit is decided. ``queryable``:
        readers see them. Raises BatchRefusedError, NotCommittedError after ``timeout`` seconds, TableRestoredError, GiveUp::

            ch.flush("durable", timeout=10)
        """
        self._thread.run(self._core.flush(level, timeout=timeout))

    def wait(self, offset: int, level: Level = "durable", *, timeout: float | None = None) -> None:
        """Returns when rows up to ``offset`` have reached ``level``; does not ask for a checkpoint. Raises as ``flush``."""
        self._thread.run(self._core.wait(offset, level, timeout=timeout))

    def close(self, level: Level | None = "queryable", *, timeout: float | None = None) -> None:
        """Flushes to ``level`` and closes the channel, even if the flush raises; ``close(None)`` does not flush.

        Does nothing in a process that was forked from the one with the connection, in which the channel goes on.
        """
        if self._thread.is_here:
            self._thread.run(self._core.close(level, timeout=timeout))

    def _check_is_here(self) -> None:
        """Raises ClosedError, InsideCallError."""
        self._thread.check_is_here()
        self._shared.lock.check_not_here()

    def _append(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> Receipt:
        """Converts rows on the caller's thread; waits on the event loop only when the buffer is full."""
        self._thread.check_is_here()
        shared, offset = self._shared, whole(offset)
        if shared.lock.is_here():
            shared.lock.check_not_here()
        if (single := shared.try_row(row_format, rows, offset)) is not None:
            return Receipt(self, single)
        row_format, rows, columns = self._core.prepared(row_format, rows)
        if columns is not None:
            row_format = self._thread.run(self._core.take_columns(columns, row_format))
        while True:
            try:
                return Receipt(self, self._append_as(row_format, rows, offset, timeout))
            except (RowError, SchemaError) as misfit:
                row_format = self._thread.run(self._core.evolved(row_format, rows, misfit))

    def _append_as(self, row_format: RowFormat, rows: object, offset: int | None, timeout: float | None) -> int:
        shared = self._shared
        shared.check_accepts(offset)
        taken = shared.offset if offset is None else offset
        for encoded in encode_call(self._core.encoder, row_format, rows, offset):
            now = shared.try_append_rows(row_format, encoded, offset)
            if now is None:
                now = self._thread.run(self._core.runner.append_rows(row_format, encoded, offset, self._core.seconds(timeout)))
            taken = now
        return taken
