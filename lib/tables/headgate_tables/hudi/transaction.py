"""One transaction: an instant, the files written under it, and their commit or rollback.

The library's ``upsert`` and ``delete`` are transactions of one call; the cluster opens them for its checkpoints and adds the
write statuses that its writers report.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import TracebackType

import pyarrow as pa

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.records import Channels, DerivedFile
from headgate_tables.errors import FixCall, OperatorNeeded, ReopenTable, RetryLater, TransactionError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.results import CommitResult
from headgate_tables.face.settings import BlockFormat
from headgate_tables.face.writing import Changes, LoadMode
from headgate_tables.hudi.batches import table_chunks
from headgate_tables.hudi.bucket_rules import Rescale
from headgate_tables.hudi.bulk_loads import DELTACOMMIT, BulkLoad, Replaced
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.commit_files import commit_files, pending_deltacommit, summary
from headgate_tables.hudi.data_files import THREADS
from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.groups import GroupIds
from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.place import Placed, place_deletes, place_upserts
from headgate_tables.hudi.reported_files import find_false_files
from headgate_tables.hudi.sift import sift_batch
from headgate_tables.hudi.timeline.commit_metadata import encode_commit
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.storage.store import Store


class Transaction:
    """Made by ``Table.transaction()``. As a context manager it commits at the end, or rolls back on an error."""

    def __init__(
        self,
        store: Store,
        log: CommitLog,
        definition: Definition,
        groups: GroupIds,
        writer: ChangeWriter,
        block_format: BlockFormat,
        instant: str,
        before_commit: Callable[[bool], Collection[str]],
        after_commit: Callable[["Transaction", str], None],
    ) -> None:
        self.instant = instant
        self.statuses: list[WriteStatus] = []
        self.result: CommitResult | None = None
        self._store = store
        self._log = log
        self._definition = definition
        self._groups = groups
        self._writer, self._block_format = writer, block_format
        self._before_commit, self._after_commit = before_commit, after_commit
        self._schema = avro_schema(definition, meta_columns=False)
        self._versions: dict[str, int] = {}
        self._superseded = 0
        self._announced = self._shown = self._broken = self._ended = self._sent = False
        self._listed: Collection[str] = ()
        self._load: BulkLoad | None = None

    def upsert(self, data: object) -> None:
        """Inserts rows or replaces those of the same key. ``data``: anything with ``__arrow_c_stream__``, with all columns.

        Raises a FixCall for bad data and writes nothing of that chunk; roll back then.
        """
        self._check_open()
        for changes, beaten in map(self._sifted_rows, table_chunks(data)):
            self._write(changes, beaten)
            del changes  # or the next chunk would be read into memory beside this one

    def delete(self, keys: object, *, as_seen: bool = False) -> None:
        """Deletes by key. ``keys``: key, partition and ordering columns; others are ignored. Obeys event time (rule DE1).

        ``as_seen``: they are those of the rows as they are now, and no other transaction is open.
        """
        self._check_open()
        placed = map(partial(place_deletes, definition=self._definition, as_seen=as_seen), table_chunks(keys))
        for changes, beaten in map(self._sifted, placed):
            self._write(changes, beaten, deletes=True)
            del changes

    def _sifted_rows(self, table: pa.Table) -> tuple[list[Changes], int]:
        return self._sifted(place_upserts(table, self._definition))

    def _sifted(self, placed: Placed) -> tuple[list[Changes], int]:
        """The changes, and how many rows were dropped because another row of the same key beats them."""
        changes = sift_batch(placed, self._definition.ordering)
        return changes, len(placed.keys) - sum(each.rows.num_rows for each in changes)

    def announce(self) -> None:
        """Puts requested and inflight on the timeline; only then may data files of the instant be written (rule P3).

        Done once; a transaction that only writes itself does it before its first file. Raises as ``commit`` before it decides.
        """
        self._check_open()
        self._announce()

    def announce_bulk_load(
        self, mode: LoadMode = "into_empty", partitions: Collection[str] = (), rescale: Rescale | None = None
    ) -> None:
        """``announce`` for base files, which others write. ``partitions``, ``rescale``: see ``BulkLoad``.

        ``into_empty`` wants a table that never had rows, because a base file hides what older instants put beside it. Others
        replace file groups: writers get the new ones with the table's definition, when they attach or open it. Raises
        TransactionError for a table that the mode does not fit, and while another one is open; and as ``announce``.
        """
        self._check_open()
        if self._shown or self._log.open_instants[0] != self.instant:
            raise TransactionError(
                f"the transaction of {self.instant} has begun to write, or an older one is open",
                fix="Load in a transaction of its own, while no other is open.",
            )
        load = BulkLoad(mode, self._definition, self._store.url, self._groups.look, partitions, rescale)
        load.check(self._log.state.plans)
        self._load = load
        self._announce()

    def find_false(self, statuses: Sequence[WriteStatus]) -> Mapping[int, str]:
        """Returns what is wrong with files that others report, by position (rule RO10). Raises RetryLater."""
        return find_false_files(self._store, self._log.state.epoch, self.instant, statuses, base_files=self._load is not None)

    def add(self, statuses: Sequence[WriteStatus]) -> None:
        """Adds files that others wrote under this instant, after ``announce``, and made durable."""
        self._check_open()
        self._shown = True
        self.statuses += statuses

    def commit(
        self,
        extra_metadata: Mapping[str, str] | None = None,
        channels: Channels | None = None,
        on_durable: Callable[[], None] | None = None,
    ) -> CommitResult:
        """Decides and publishes. Without files the instant lapses, and no more is decided than ``channels`` (rule RO5), records
        that change with these rows. ``on_durable`` is called once, when the slot is won, before readers see it (rule C6).

        Raises TransactionError while an older transaction is open; DeposedError, OutcomeUnknownError end the handle.
        """
        self._check_open()
        self._check_whole()
        completion = ""
        replaced = self._find_replaced()
        if self.statuses or replaced or (self._load and self._load.rescale) or (channels and not self._announced):
            self._listed = self._before_commit(False)
            operation = self._load.operation if self._load else "UPSERT"
            metadata = encode_commit(self.instant, self.statuses, self._schema, operation, extra_metadata or {}, replaced)
            completion = self._decide(metadata, replaced, channels, on_durable)
            self._after_commit(self, completion)
        else:
            self._ended = True  # at once: its instant is given back, and a failure behind that has nothing to roll back
            self._end_unwritten()
            if channels:
                self._log.win_offsets(channels, on_durable=on_durable)
        self._ended = True
        self.result = summary(self.instant, completion, self.statuses, self._superseded, sum(map(len, (replaced or {}).values())))
        return self.result

    @property
    def overwrites(self) -> bool:
        """Whether its commit takes file groups out of the table."""
        return self._load is not None and self._load.overwrites

    def _find_replaced(self) -> Replaced | None:
        if self._load is None or not self._load.overwrites:
            return None
        if len(self._log.open_instants) > 1:
            # It may have put rows into the groups that are replaced now, and would commit them where nobody sees them.
            raise TransactionError(
                f"another transaction was begun beside the overwrite of {self.instant}", fix="Roll that one back first."
            )
        self._load.check(self._log.state.plans)
        return self._load.replaced(self.statuses)

    def _decide(
        self, metadata: bytes, replaced: Replaced | None, channels: Channels | None, on_durable: Callable[[], None] | None
    ) -> str:
        self._sent = True
        try:
            files = [status.file for status in self.statuses]
            config = self._load.config(self.instant, self.statuses, replaced) if self._load and replaced is not None else None
            there = {path: 0 for path, content in self._pending_files() if not content and path in self._listed}
            return self._log.commit(
                self.instant, files, lambda completion: self._derive(completion, metadata), channels, on_durable, config, there
            )
        except (RetryLater, FixCall, OperatorNeeded):
            self._sent = False
            raise
        finally:
            if self.instant in self._log.state.commits:
                written = [(status.stat.partition, bucket_of(status.stat.file_id)) for status in self.statuses]
                self._groups.commit(written, self.instant)

    def rollback(self) -> None:
        """Gives the transaction up: its instant is dead from the next slot on, its files are swept."""
        self._check_open()
        self._ended = True
        self._groups.forget(self.instant)
        self._end_unwritten()
        # Only this process uses its staged names, and no slot was sent for them: nothing can ever name them (rules W2, RO2).
        self._store.delete(status.file.stage for status in self.statuses if status.file.stage)

    def _end_unwritten(self) -> None:
        if self._shown:
            self._log.abandon(self.instant)
        else:
            self._log.release(self.instant)

    @property
    def ended(self) -> bool:
        """Whether the transaction was committed or rolled back."""
        return self._ended

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._give_up(error)
        elif not self._ended:
            try:
                self.commit()
            except BaseException as refused:
                self._give_up(refused)
                raise

    def _give_up(self, error: BaseException) -> None:
        """Rolls back what can never be committed any more, so that younger transactions need not wait for it."""
        if not (self._ended or self._sent or isinstance(error, ReopenTable)):
            self.rollback()

    def _write(self, changes: Sequence[Changes], beaten: int, *, deletes: bool = False) -> None:
        if not changes:
            return
        self._check_whole()
        self._groups.load()
        self._announce()
        self._broken = True
        targets = [self._target(each, deletes=deletes) for each in changes]
        file_ids, versions = [file_id for file_id, _ in targets], [version for _, version in targets]
        write, form = self._writer.write, self._block_format
        with self._log.ending_on_failed_sync():
            self.statuses += write(self.instant, changes, versions, block_format=form, file_ids=file_ids, threads=THREADS)
        self._broken = False
        self._superseded += beaten

    def _announce(self) -> None:
        """Creates the requested and inflight files, before any data file of the instant (rule P3)."""
        if self._announced:
            return
        # On a table that another program has written to, a pending instant of ours would stop that program
        # (test_a_handle_that_was_open_when_spark_wrote_is_refused_and_leaves_nothing_in_sparks_way).
        self._before_commit(True)
        self._shown = True
        for path, content in self._pending_files():
            self._log.create(path, content)
        self._announced = True

    def _pending_files(self) -> Sequence[DerivedFile]:
        return self._load.pending_files(self.instant) if self._load else pending_deltacommit(self.instant)

    def _target(self, changes: Changes, *, deletes: bool) -> tuple[str, int]:
        """File id and log version of the changes' file; version 0: a base file."""
        alone = self._log.open_instants[0] == self.instant
        file_id, may_be_base = self._groups.claim(changes.partition, changes.bucket, self.instant, alone=alone)
        if may_be_base and not deletes:
            return file_id, 0
        key = f"{changes.partition}/{file_id}"
        self._versions[key] = self._versions.get(key, 0) + 1
        return file_id, self._versions[key]

    def _derive(self, completion: str, metadata: bytes) -> list[DerivedFile]:
        if not self._announced:
            return []  # offsets alone make no instant (rule RO5)
        written = {status.stat.partition for status in self.statuses}
        new = [partition for partition in written if not self._groups.knows_partition(partition)]
        done = Instant(self.instant, self._load.action if self._load else DELTACOMMIT, State.COMPLETED, completion)
        pending = [*self._pending_files(), *(self._load.shown_files(self.instant) if self._load else ())]
        return commit_files(pending, new, done, metadata)

    def _check_whole(self) -> None:
        """Refuses a commit after a failed write: files may lie under this instant that the commit would not list (rule W1)."""
        if self._broken:
            what = f"a write of the transaction of {self.instant} failed"
            raise TransactionError(what, fix="Roll back, and write again in a new one.")

    def _check_open(self) -> None:
        if self._ended:
            raise TransactionError(f"the transaction of {self.instant} has ended", fix="Begin a new one.")
        if self._sent:
            # Its slot may name the staged files: the process that rolls it forward needs them
            # (test_an_interrupt_while_the_slot_is_sent_takes_nothing_of_the_commit_away).
            what = f"the commit of {self.instant} was sent and may stand"
            raise TransactionError(what, fix="Open the table again; `commits()` tells whether it does.")
