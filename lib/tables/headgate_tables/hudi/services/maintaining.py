"""The upkeep of a table that needs no operator: one step at a time, between the checkpoints of its owner."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from headgate_tables.face.operation import OperationResult, Plan
from headgate_tables.face.results import MaintenanceResult, SliceLogSize
from headgate_tables.hudi.lost_files import CommittedFile, list_unlisted
from headgate_tables.hudi.services.planning.left_figures import at_most_after
from headgate_tables.hudi.services.planning.live_slices import LiveSlices
from headgate_tables.hudi.services.planning.next_steps import BUNCH, MaintenanceState, Step, next_steps
from headgate_tables.hudi.services.planning.plans import choose, overdue, plan_slices, waits_for_commits
from headgate_tables.hudi.services.retention.horizon import age_horizon, earliest_retained
from headgate_tables.hudi.services.retention.trimming import archive, clean
from headgate_tables.hudi.services.stuck import Key
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.timeline.instant import NEVER
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage import workers

LONGEST_WAIT_MS = 60_000
"""A slice that is due waits no longer than this for others: there may be no further commits."""
LONGEST_KEPT_MS = 600_000
"""Nor do files that may be deleted wait for commits for longer."""


class Maintainer:
    """The maintenance of one handle. Lists the table once per ownership, on a thread of its own, while commits go on.

    The handle reports its decisions, so that the cost of a step depends on what a commit touched (see ``LiveSlices``).
    """

    def __init__(self) -> None:
        self._listing: Future[tuple[FileSystemView, list[CommittedFile]]] | None = None
        self._uncounted: list[str] = []
        self._slices: LiveSlices | None = None
        self._replacing: list[str] = []
        self._planned_ago, self._planned_ms = BUNCH, 0
        self._cleaned_ago = self._cleaned_ms = self._kept = 0
        self._at_most: SliceLogSize | None = None

    def step(self, table: TableContext) -> MaintenanceResult:
        """Plans a compaction, cleans or archives, whichever is due first. Raises what these raise.

        The step that ends the listing does nothing else: checkpoints wait for it, and a cleaning may take a second.
        """
        if table.snapshots.kept is None:
            self._list(table)
            return MaintenanceResult(more=True)
        if self._listing is not None:  # a service that came meanwhile has listed the table itself
            self._listing = None
            table.snapshots.give_up_listing()
        slices = self._known(table)
        slices.advance(table.clock.now_ms(), overdue(table))
        state = self._state(table, slices)
        waits = False
        for each in next_steps(state, table.settings):
            done = self._do(each, table, urgent=state.urgent)
            if done.did:
                return done
            waits = waits or done.waits
        return MaintenanceResult(waits=waits)

    def _do(self, step: Step, table: TableContext, *, urgent: bool) -> MaintenanceResult:
        match step:
            case Step.PLAN:
                table.check()
                if slices := choose(table, forced=False):
                    if not urgent and waits_for_commits(table, slices):
                        return MaintenanceResult(waits=True)
                    plan = plan_slices(table, slices, minor=True)
                    self.planned(plan, table.clock.now_ms())
                    return MaintenanceResult(plan, f"planned {len(plan.operations)} compactions", more=True)
            case Step.CLEAN:
                result = clean(table, plan_only=False)
                self._cleaned_ago, self._cleaned_ms, self._kept = 0, table.clock.now_ms(), result.kept
                # Files that were considered and stay are kept: they are considered again now and then, not with every commit.
                self._replacing = [point for point in self._replacing if point > result.earliest]
                if result.files:
                    return MaintenanceResult(did=f"cleaned {len(result.files)} files", more=True)
            case Step.ARCHIVE:
                if gone := archive(table, plan_only=False, forced=False).instants:
                    return MaintenanceResult(did=f"archived {len(gone)} instants", more=True)
        return MaintenanceResult()

    def largest_slice(self, table: TableContext) -> SliceLogSize | None:
        """See ``Upkeep.largest_slice``. Until the table was listed it is an upper bound if the owner before left figures, else
        None.
        """
        return self._known(table).largest if table.snapshots.kept is not None else self._at_most

    def log_size_of(self, table: TableContext, key: Key) -> SliceLogSize | None:
        """Of one slice, by partition and file id; None until the table was listed."""
        return self._known(table).log_size_of(key) if table.snapshots.kept is not None else None

    # What the handle decided.

    def took_over(self, left: SliceLogSize | None) -> None:
        """Notes a fence, and what the owner before left."""
        self._at_most = left
        self.forget()

    def committed(self, files: Mapping[str, Mapping[str, int]]) -> None:
        """Notes a delta commit: names and sizes of its files by partition."""
        self._planned_ago += 1
        self._cleaned_ago += 1
        if self._at_most is not None:
            self._at_most = at_most_after(self._at_most, files)
        if self._slices is not None:
            for partition, names in files.items():
                self._slices.add_files(partition, names)

    def planned(self, plan: Plan, now: int) -> None:
        """Notes a new plan. ``now``: milliseconds."""
        self._planned_ago, self._planned_ms = 0, now
        if self._slices is not None:
            self._slices.plan(plan)

    def finished(self, plan: Plan, completion: str, finished: Sequence[OperationResult]) -> None:
        """Notes that a plan was completed, or cancelled (``completion`` "")."""
        if completion:
            self._replacing.append(completion)
        if self._slices is None:
            return
        if completion:
            self._slices.done(plan, completion, {file.path: file.size for each in finished for file in each.files})
        else:
            self._slices.cancel(plan)

    def forget(self) -> None:
        """The view or the settings have changed: figures are made anew, and a listing that is under way counts for nothing."""
        self._slices = self._listing = None

    # What there is.

    def _known(self, table: TableContext) -> LiveSlices:
        if self._slices is None:
            view = table.view()
            self._slices = LiveSlices.from_view(view.groups(), table.plans.values(), table.settings, view.completion_of)
            cleaned = table.log.state.cleaned
            self._replacing = [
                w.completion for w in view.timeline.writes() if w.action != "deltacommit" and w.completion > cleaned
            ]
        self._slices.set_stuck(table.stuck, table.clock.now_ms())
        return self._slices

    def _state(self, table: TableContext, slices: LiveSlices) -> MaintenanceState:
        settings, now = table.settings, table.clock.now_ms()
        timeline, state = table.view().timeline, table.log.state
        retained = earliest_retained(timeline.writes(), settings, now=now, unfinished=table.log.open_instants)
        horizon = age_horizon(settings, now)
        readable = min(retained.completion, horizon) if retained else horizon
        straddling = slices.straddling(
            retained.completion if retained else NEVER, [saved.point for saved in state.savepoints.values()]
        )
        walls = [
            *state.reserved,
            *state.plans,
            *state.savepoints,
            *table.log.dead_names.unsettled,
            *([straddling] if straddling else []),
        ]
        free = bisect_left(sorted(timeline.completed), min([*walls, *([retained.time] if retained else [])], default=NEVER))
        return MaintenanceState(
            due_slices=len(slices.due),
            urgent=slices.urgent,
            planned_ago=BUNCH if now - self._planned_ms >= LONGEST_WAIT_MS else self._planned_ago,
            replacing=self._replacing,
            readable=readable,
            cleaned_ago=10 * BUNCH if now - self._cleaned_ms >= LONGEST_KEPT_MS else self._cleaned_ago,
            kept=self._kept,
            completed=len(timeline.completed),
            archivable=min(free, max(0, len(timeline.completed) - settings.archive_min)),
        )

    def _list(self, table: TableContext) -> None:
        """Begins the listing for a view, or takes its result in when it has ended.

        A plan that ends meanwhile may leave names that do not count. The listing may have counted one, and so have taken a slice
        that lost a file for an older one (rule W6): it begins again.
        """
        self._slices = None
        if self._listing is None:
            table.snapshots.begin_listing()
            self._uncounted = uncounted = table.uncounted
            store, folder = table.store, table.layout.history_folder
            self._listing = workers.beside("headgate-list", lambda: list_unlisted(store, folder, uncounted))
        if self._listing.done():
            listing, self._listing = self._listing, None  # the next step lists again, also after an error
            listed = listing.result()
            if set(table.uncounted) <= set(self._uncounted):
                self._at_most = None
                table.end_listing(*listed)
