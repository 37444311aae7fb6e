"""A table of the blocking SDK."""

from collections.abc import Callable
from datetime import timedelta

from headgate import aio
from headgate.arguments import Settings
from headgate.blocking_channel import Channel
from headgate.copying import Copy
from headgate.definition import Columns, TableInfo
from headgate.deleting import Deletion
from headgate.loop_thread import LoopThread
from headgate.operating import Alteration, ChannelSummary, Compaction, Restore, TableDrop, Truncation, Types
from headgate.reading.blocking import ReadableByName
from headgate.reading.library import Moment, Options
from headgate.schemas import SchemaLike


class Table(ReadableByName):
    """A table to write to, to read and to operate. ``info`` is its definition: ``hg.table("orders").info.schema``."""

    def __init__(self, thread: LoopThread[aio.Headgate], core: aio.Table) -> None:
        self._thread = thread
        self._core = core

    @property
    def info(self) -> TableInfo:
        """The table's definition, with the columns of the last ``alter`` of this object."""
        return self._core.info

    def channel(self, name: str) -> "Channel":
        """Opens the channel of this name, as its only producer: an older producer gets ChannelTakenOverError (rule CH4).

        The name and ``committed_offset`` survive restarts. Rows of one channel are committed in order; use one channel for each
        independent source. Raises UnavailableError, ChannelForbiddenError, TableQuarantinedError::

            with orders.channel("loader-1") as ch:
                ch.upsert(rows)
        """
        return Channel(self._thread, self._thread.run(self._core.channel(name).open()))

    def alter(
        self, *, add: Types | None = None, widen: Types | None = None, nullable: Columns = None, plan_only: bool = False
    ) -> Alteration:
        """Adds columns, widens types, lets columns be null. No file is written anew, and producers go on::

            orders.alter(add={"gate": str, "address": pa.struct([("street", pa.string())])})
            orders.alter(add={"address.zip": str}, widen={"id": pa.int64()}, nullable="gate", plan_only=True).added

        Names are paths into structs; ``tags.element`` is the item of a list, ``prices.value`` a map's value. Rows that are there
        are null in new columns. Open channels go on with the columns that they have; those that are opened from now on, by any
        program, have the new ones. A change that is made already is none, so that any number of producers may ask for it.
        ``plan_only``: returns what would change. Needs the right admin. Raises SchemaError for another change of a column that is
        there.
        """
        return self._thread.run(self._core.alter(add=add, widen=widen, nullable=nullable, plan_only=plan_only))

    def evolve(self, columns: SchemaLike) -> Alteration:
        """Lets the table hold these columns, any of a batch, as far as its setting ``headgate.evolve`` allows it::

            orders.configure({"headgate.evolve": "add"})
            orders.evolve([("gate", str)]).added

        Channels do this by themselves with rows that bring a column; a program that knows its columns may do it before. Needs the
        right write. Raises SchemaError for what the setting does not allow, and for types of which neither holds the other.
        """
        return self._thread.run(self._core.evolve(columns))

    def truncate(self, partitions: Columns = None) -> Truncation:
        """Removes all rows of the table, or of partitions, in one commit that reads none of them::

            orders.savepoint("before the new year")
            orders.truncate("2026-01-01").file_groups

        ``partitions``: one path or several, from the table's root, as files have them. Channels go on with their offsets: rows
        that were not committed yet, and those that are sent later, are kept. The rows stay readable as of earlier times until
        the table is cleaned, and savepoints keep them. Needs the right admin. Raises InvalidArgumentError for a partition that
        the table never had, and UnknownOutcomeError when the call broke off: a second one would remove what came meanwhile.
        """
        return self._thread.run(self._core.truncate(partitions))

    def delete_where(
        self,
        where: str,
        *,
        dry_run: bool = False,
        channel: str = "",
        timeout: float | None = None,
        storage_options: Options = None,
    ) -> Deletion:
        """Deletes the rows that a condition in SQL selects (see ``scan``), and returns when readers see none of them any more.

        Searched is the newest commit, so everything that was queryable before. The rows found are deleted by key, through a
        channel: ``channel``, or one that the condition names. That may take several commits. Each delete has the ordering value
        of the row that was found: a row that a producer updates meanwhile to a larger one stays. **In a table without ordering
        the later write wins**: what is written to a found row's key between the search and the delete is deleted, too.

        Then it counts again: ``left`` is how many rows match now, because they came meanwhile. After a break, call it again: what
        is deleted does not match any more. ``dry_run``: only counts. Needs ``pip install 'headgate[read]'``, and the rights read
        and write. Files keep the bytes until compaction and cleaning. ``timeout``: seconds to wait for room, and for the commit.

        Raises as ``scan`` and ``Channel.flush``; InvalidArgumentError for rows with an ordering value that a delete cannot have::

            orders.delete_where("day < '2020-01-01'", dry_run=True).rows
            orders.delete_where("day < '2020-01-01'").left
        """
        core = self._core.delete_where(where, dry_run=dry_run, channel=channel, timeout=timeout, storage_options=storage_options)
        return self._thread.run(core)

    def copy(
        self,
        to: str,
        *,
        as_of: Moment | None = None,
        go_on: bool = False,
        timeout: float | None = None,
        storage_options: Options = None,
        progress: Callable[[int], object] | None = None,
    ) -> Copy:
        """Makes a new table ``to`` of the same columns, key, partitions, ordering and buckets, with the rows of one moment::

            orders.copy("orders_before", as_of="10 minutes ago").rows

        ``as_of``: as ``scan`` takes it, also a savepoint's instant; without it the newest commit. This program reads rows from
        the storage and sends them through a channel, so it needs ``pip install 'headgate[read]'``, and the rights to read this
        table and to create and write the other. Channels, savepoints and settings stay behind. Readers see all rows when it
        returns.

        After a break, call it with ``go_on=True``: all rows of the moment are sent again, so nobody else may have written ``to``.
        ``progress`` is called with the rows sent so far. Raises as ``scan``, ``create_table`` and ``Channel.flush``;
        InvalidArgumentError for a table ``to`` that is no such copy.
        """
        copying = self._core.copy(
            to, as_of=as_of, go_on=go_on, timeout=timeout, storage_options=storage_options, progress=progress
        )
        return self._thread.run(copying)

    def compact(self, *, sort: bool = False) -> Compaction:
        """Compacts everything that can be compacted now, and returns when it is done: ``orders.compact().finished``.
        As the other operations it needs the right to operate, and raises UnavailableError, PermissionDeniedError.

        ``sort``: also rewrites files whose rows are not in the order that the setting
        ``hoodie.clustering.plan.strategy.sort.columns`` wants. Raises InvalidArgumentError if it wants none.
        """
        return self._thread.run(self._core.compact(sort=sort))

    def savepoint(self, comment: str = "") -> str:
        """Keeps the newest commit and its channels' offsets: ``saved = orders.savepoint("before the migration")``, an instant."""
        return self._thread.run(self._core.savepoint(comment))

    def savepoints(self) -> list[str]:
        """Returns the instants of all savepoints, oldest first."""
        return self._thread.run(self._core.savepoints())

    def remove_savepoint(self, instant: str) -> None:
        """Ends a savepoint; its files go with the next clean. Raises InvalidArgumentError for an instant without one."""
        self._thread.run(self._core.remove_savepoint(instant))

    def restore(self, instant: str, *, plan_only: bool = False) -> Restore:
        """Takes the table and its channels back to a savepoint, for good. ``plan_only``: returns what would be undone.

        Open channels end with TableRestoredError. Needs the right admin. Raises UnknownOutcomeError when the call breaks off: it
        is sent once, because a second restore would undo commits made after the first.
        """
        return self._thread.run(self._core.restore(instant, plan_only=plan_only))

    def drop(self, *, grace: timedelta | None = None, plan_only: bool = False) -> TableDrop:
        """Deletes the table, for good, savepoints too: ``hg.table("orders").drop()``. ``plan_only``: returns what would go. Files
        stay for ``grace=timedelta(days=7)``, in which ``hg.undrop_table("orders")`` brings it back. Its channels end with
        TableDroppedError. Files of others in its folder stay: ``left``. This object never drops a new table of the name: that
        raises InvalidArgumentError. Needs the right admin.
        """
        return self._thread.run(self._core.drop(grace=grace, plan_only=plan_only))

    def rename(self, to: str) -> None:
        """Gives the table another name: ``orders.rename("sales.orders")``. Rows, channels, their offsets and the folder stay;
        producers of the old name get TableRenamedError. Needs the rights admin, and create on ``to``. Raises TableExistsError.
        """
        self._thread.run(self._core.rename(to))

    def configure(self, settings: Settings | None = None, *, unset: Columns = None) -> dict[str, str]:
        """Changes settings, and returns all: ``orders.configure({"headgate.evolve": "add"})``. Raises InvalidArgumentError.

        A number or a bool counts as its text: ``{"hoodie.clean.commits.retained": 20}``.
        """
        return self._thread.run(self._core.configure(settings, unset=unset))

    def channels(self, prefix: str = "") -> list[ChannelSummary]:
        """Returns the channels that the table remembers, by name; those whose names begin with ``prefix``.

        ``{each.name: each.committed_offset for each in orders.channels("loader-")}`` says how far each loader has come.
        """
        return self._thread.run(self._core.channels(prefix))
