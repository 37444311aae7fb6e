"""The services of a table handle: compaction, cleaning, archiving, savepoints, settings. ``TableOwner`` inherits them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from headgate_tables.face import owner
from headgate_tables.face.altering import Alteration, AlterResult
from headgate_tables.face.operation import Operation, OperationResult, Plan
from headgate_tables.face.rescaling import RescaleProgress, RunUnits
from headgate_tables.face.results import (
    ArchiveResult,
    CleanResult,
    CompactResult,
    MaintenanceResult,
    RescaleResult,
    RestoreResult,
    SliceLogSize,
)
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.bucket_rules import Scale
from headgate_tables.hudi.schema.evolution import evolution
from headgate_tables.hudi.services import altering, configuring, embedded, rescaling, savepoints
from headgate_tables.hudi.services.maintaining import Maintainer
from headgate_tables.hudi.services.planning import plans as planning
from headgate_tables.hudi.services.planning import setting_aside
from headgate_tables.hudi.services.planning.unsorted import check_row_order, look_for_unsorted
from headgate_tables.hudi.services.retention import trimming
from headgate_tables.hudi.services.retention.expiring import check_ttl
from headgate_tables.hudi.services.stuck import Key, StuckSlice
from headgate_tables.hudi.services.table_context import TableContext


class TableServices(ABC):
    """Every method but the properties owns the table first, and raises what ``Table.own`` raises."""

    _maintainer: Maintainer

    @abstractmethod
    def _context(self) -> TableContext:
        """Owns the table, and returns what its services work with."""

    @abstractmethod
    def transaction(self, *, tidy: bool = True) -> rescaling.Transaction:
        """Begins one."""

    @abstractmethod
    def _unowned(self) -> rescaling.UnownedTable:
        """Owns nothing."""

    @abstractmethod
    def _restored(self) -> None:
        """Forgets what a restore has changed."""

    # For programs.

    def compact(self, *, plan_only: bool = False, progress: embedded.Progress | None = None, sort: bool = False) -> CompactResult:
        """Merges the logs of every slice into new base files. Other threads of this process may write rows meanwhile.

        ``plan_only``: returns what would be done and changes nothing. ``progress(operation, rows)`` is called as each continues.
        ``sort``: also rewrites slices without logs that lie in another order than the settings want. Raises OptionError if these
        want none.
        """
        try:
            table = self._context()
            also = look_for_unsorted(table)() if sort else ()
            return embedded.compact(table, plan_only=plan_only, progress=progress, also=also)
        finally:
            self._maintainer.forget()

    def clean(self, *, plan_only: bool = False) -> CleanResult:
        """Removes file slices that the settings release and no savepoint, reader's lease or plan needs."""
        return trimming.clean(self._context(), plan_only=plan_only)

    def archive(self, *, plan_only: bool = False) -> ArchiveResult:
        """Moves the oldest instants from the active timeline to its history, as far as settings and open work allow."""
        return trimming.archive(self._context(), plan_only=plan_only)

    def savepoint(self, comment: str = "", user: str = "headgate") -> str:
        """Saves the newest commit, so that nothing of it is cleaned and ``restore`` can go back to it; returns its instant."""
        return savepoints.savepoint(self._context(), comment, user)

    def remove_savepoint(self, instant: str) -> None:
        """Removes a savepoint. Raises OptionError for one that is not there."""
        savepoints.remove_savepoint(self._context(), instant)

    def restore(self, instant: str, *, plan_only: bool = False) -> RestoreResult:
        """Takes the table back to a savepoint: all later commits are gone for good. Open transactions lapse (rule CH8).

        ``plan_only``: returns what would go and changes nothing. Raises OptionError for an instant that is not saved.
        """
        result = savepoints.restore(self._context(), instant, plan_only=plan_only)
        if not plan_only:
            self._maintainer.forget()
            self._restored()
            self._context()  # which finds out that the definition has changed
        return result

    def configure(self, changes: Mapping[str, str | float | None]) -> TableSettings:
        """Sets the values in ``changes``, by key; None restores a default, a number or a bool stands for its text. In force when
        this returns, here and in a cluster.

        Raises OptionError and changes nothing for an unknown key or values that do not go together.
        """
        self._maintainer.forget()
        return configuring.configure(self._context(), changes, check_ttl, check_row_order)

    def alter(self, alteration: Alteration, *, plan_only: bool = False) -> AlterResult:
        """Adds columns, widens types, and lets columns be null, while readers and other programs go on. Rewrites no file: older
        rows are null in new columns, and those that are sent without them are, too.

        ``plan_only``: returns what would change. Raises SchemaError for a change that some reader could not follow,
        UnsupportedTypeError, TransactionError while a transaction is open.
        """
        result = altering.alter(self._context(), alteration, plan_only=plan_only)
        if result.instant:
            self._context()  # which finds out that the definition has changed
        return result

    def rescale(
        self,
        buckets: int,
        *,
        partitions: str = "",
        plan_only: bool = False,
        progress: RescaleProgress = lambda _rows, _bytes: None,
        run: RunUnits | None = None,
        planned: RescaleResult | None = None,
    ) -> RescaleResult:
        """Gives each partition another number of buckets, in one commit that rewrites all rows. Readers go on meanwhile, and see
        the rows once, before and after. ``progress`` gets the rows written so far, and the bytes of slices that are done with.
        ``partitions``: only those whose paths this matches, in which each ``*`` stands for any characters but a slash, and those
        that come. ``run``: has other processes do the work, which ``progress`` then hears nothing of.

        ``plan_only``: returns what would be done, owns and changes nothing. ``planned``: what that returned a moment ago, to look
        only at newer commits for files that are gone from the store. Raises OptionError for a number that a table cannot have,
        MissingFileError for such a file, TransactionError while a transaction or a compaction is open.
        """
        scale = Scale(buckets, partitions)
        unowned = self._unowned()
        if not rescaling.is_needed(unowned.definition, scale):
            return rescaling.nothing_to_do(scale)
        if plan_only:
            return rescaling.planned(unowned, scale)
        since = planned.compared if planned is not None else ""
        with self.transaction() as transaction:
            done = rescaling.rescale(self._context(), transaction, scale, progress, run, since)
        self._maintainer.forget()
        return done

    def evolution(self, columns: pa.Schema) -> Alteration:
        """The alteration after which the table holds ``columns``, any of those of a batch, as far as the setting
        ``headgate.evolve`` allows it. Raises SchemaError and UnsupportedTypeError.
        """
        table = self._context()
        return evolution(table.definition.schema, columns, table.settings.evolve)

    def set_aside(self, name: str, why: str = "") -> None:
        """Sets the file slice ``partition/file group`` aside: it is not compacted, and a cluster refuses its rows, so that damage
        to one of its files affects no other slice. Raises OptionError for one that is not there.
        """
        setting_aside.set_aside(self._context(), name, why)

    def readmit(self, name: str, *, accept_loss: bool = False) -> None:
        """Undoes ``set_aside``, once the slice's files are in order, and makes it due for compaction. ``accept_loss``: those of
        its files that are gone do not count any more, so that their rows are lost for good. Raises as ``set_aside``, and
        OptionError if none is gone.
        """
        setting_aside.readmit(self._context(), name, accept_loss=accept_loss)
        if accept_loss:
            self._maintainer.forget()

    # For a cluster's owner.

    def look_for_unsorted(self) -> Callable[[], list[Key]]:
        """Returns a look, for any thread, at which slices without logs are not in the order of the settings. Raises OptionError
        if these want none.
        """
        return look_for_unsorted(self._context())

    def plan_compaction(self, *, forced: bool = False, also: Collection[Key] = ()) -> Plan | None:
        """Plans what is due, or every slice with logs when ``forced``, and those of ``also``; None when there is nothing."""
        table = self._context()
        plan = planning.plan_compaction(table, forced=forced, also=also)
        if plan is not None:
            self._maintainer.planned(plan, table.clock.now_ms())
        return plan

    def finish_plan(
        self, instant: str, finished: Sequence[OperationResult], dropped: Mapping[Operation, str] | None = None
    ) -> str:
        """Completes a plan with what was finished; returns the completion time, or "" when nothing was and it was cancelled.

        ``dropped``: operations that failed for good, and why.
        """
        table = self._context()
        plan = table.plans.get(instant)
        completion = planning.finish_plan(table, instant, finished, dropped or {})
        if plan is not None:
            self._maintainer.finished(plan, completion, finished)
        return completion

    def cancel_plan(self, instant: str) -> None:
        """Cancels a plan for good (rule W5). Does nothing when it is not open."""
        table = self._context()
        plan = table.plans.get(instant)
        if plan is not None:
            planning.cancel_plan(table, instant)
            self._maintainer.finished(plan, "", ())

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Open compactions by instant, according to the newest slot that this handle knows."""
        return self._context().plans

    def maintain(self) -> MaintenanceResult:
        """One step of what is due: plan a compaction, clean, archive. To be called between checkpoints; no step takes long."""
        return self._maintainer.step(self._context())

    def largest_slice(self) -> SliceLogSize | None:
        """The most log files and log bytes of any slice that is not stuck; None before ``maintain`` has listed the table."""
        return self._maintainer.largest_slice(self._context())

    def log_size_of(self, stuck: owner.StuckSlice) -> SliceLogSize | None:
        """Log files and log bytes of one slice; None before ``maintain`` has listed the table."""
        return self._maintainer.log_size_of(self._context(), stuck.key)

    @property
    def stuck(self) -> Sequence[StuckSlice]:
        """Slices that cannot be compacted, or are set aside, by name, according to the newest slot that this handle knows."""
        return sorted(self._context().stuck.values(), key=lambda each: each.name)
