"""A table without bytes: the real view and timeline, fed with names and sizes by a workload, its services and two open
checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.operation import Plan
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import log_name
from headgate_tables.hudi.services.planning.choose import choose_slices, operation_of
from headgate_tables.hudi.services.planning.live_slices import LiveSlices
from headgate_tables.hudi.services.planning.next_steps import MaintenanceState, Step, next_steps
from headgate_tables.hudi.services.planning.urgency import overdue_since
from headgate_tables.hudi.services.retention.archiving import choose_archivable, straddling_instants
from headgate_tables.hudi.services.retention.cleaning import Cleanable, choose_dead_files
from headgate_tables.hudi.services.retention.horizon import earliest_retained
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.instant import NEVER, Instant, State
from headgate_tables.hudi.view import FileSystemView
from support.systems import NOON

Key = tuple[str, str]


@dataclass
class SimulatedTable:
    """Every checkpoint's instant is taken before the checkpoint before it commits, as in a cluster (rule TM5).

    ``growth``: the part of a log's bytes that a compaction adds to the base; the rest replaces rows that are there.
    """

    settings: TableSettings
    growth: float = 0.7
    step_ms: int = 10_000
    now: int = NOON
    written: int = 0
    ingested: int = 0
    commits: int = 0
    cleaned: str = ""
    planned_at: int = 0
    cleaned_at: int = 0
    kept: int = 0
    savepoints: dict[str, str] = field(default_factory=dict)
    leases: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    history: dict[str, str] = field(default_factory=dict)
    replacing: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    files: dict[str, tuple[Key, bool, str, str]] = field(default_factory=dict)
    """Path of every file there ever was: its group, whether it is a base file, instant, completion time."""
    merged: dict[str, frozenset[str]] = field(default_factory=dict)
    """Path of a base file to the delta commits whose rows are in it."""

    def __post_init__(self) -> None:
        self._last = self.now
        self.timeline = Timeline()
        self.view = FileSystemView(self.timeline, {}, lambda _: self.history)
        self.open = [self.next_time(), self.next_time()]
        self.live = LiveSlices(self.settings)

    def next_time(self) -> str:
        self._last = max(self.now, self._last + 1)
        return format_time(self._last)

    def visible(self, point: str) -> set[str]:
        """Files that a reader as of a completion time needs, by the definition and without the view (fact HF2)."""
        seen = {path: file for path, file in self.files.items() if file[3] <= point}
        tops: dict[Key, str] = {}
        for key, is_base, instant, _ in seen.values():
            if is_base:
                tops[key] = max(tops.get(key, ""), instant)
        return {
            path
            for path, (key, is_base, instant, completion) in seen.items()
            if (instant == tops[key] if is_base else completion >= tops.get(key, ""))
        }

    def there(self) -> set[str]:
        """Files that were not deleted."""
        return self.files.keys() - set(self.deleted)

    def read(self, point: str, *, history: bool = True) -> set[tuple[Key, str]]:
        """What a reader as of a completion time sees: groups with the delta commits whose rows it finds there.

        Without ``history`` it takes archived instants for completed at their requested time, as hudi-rs does; and of a slice
        without a base file it leaves the archived logs out if there are others.
        """

        def completion_of(instant: str) -> str:
            return self.timeline.completion(instant) or (self.history[instant] if history else instant)

        view = FileSystemView(self.timeline, {}, lambda _: self.history if history else {})
        for path in self.there():
            partition, _, name = path.rpartition("/")
            view.add_files(partition, [name])
        found = set()
        for part in view.latest_slices(lambda instant: completion_of(instant) <= point):
            instants = {log.instant for log in part.logs}
            if part.base:
                instants |= self.merged[part.path(part.base)]
            elif not history:
                instants = {instant for instant in instants if instant in self.timeline.completed} or instants
            found |= {((part.partition, part.file_id), instant) for instant in instants}
        return found

    def committed(self, point: str) -> set[tuple[Key, str]]:
        """What it should see."""
        return {
            (key, instant) for key, is_base, instant, completion in self.files.values() if not is_base and completion <= point
        }

    # --- ingest ---

    def commit(self, logs: Mapping[Key, int]) -> str:
        """The older open checkpoint commits one log per group; the next one begins."""
        self.now += self.step_ms
        instant = self.open.pop(0)
        completion = self.next_time()
        self.open.append(self.next_time())
        self.timeline.add([Instant(instant, "deltacommit", State.COMPLETED, completion)])
        self.commits += 1
        for (partition, file_id), size in logs.items():
            names = {log_name(file_id, instant, 1, "0-0-0"): size}
            self.view.add_files(partition, names)
            self.live.add_files(partition, names)
            self.files[f"{partition}/{next(iter(names))}"] = ((partition, file_id), False, instant, completion)
            self.ingested += size
            self.written += size
        return completion

    # --- compaction ---

    @property
    def overdue(self) -> str:
        return overdue_since(sorted(self.timeline.completed), self.settings)

    def plan(self, *, forced: bool = False) -> Plan | None:
        chosen = choose_slices(
            self.view.latest_slices(),
            self.settings,
            now=self.now,
            pending={(each.partition, each.file_id) for plan in self.plans for each in plan.operations},
            unfinished=self.open,
            overdue=self.overdue,
            forced=forced,
        )
        if not chosen:
            return None
        instant = self.next_time()
        plan = Plan(instant, tuple(operation_of(part, instant) for part in chosen))
        self.plans.append(plan)
        self.live.plan(plan)
        self.planned_at = self.commits
        return plan

    def finish(self, plan: Plan, dropped: Sequence[int] = ()) -> str:
        self.plans.remove(plan)
        completion = self.next_time()
        self.timeline.add([Instant(plan.instant, "commit", State.COMPLETED, completion)])
        sizes: dict[str, int] = {}
        for index, each in enumerate(plan.operations):
            if index not in dropped:
                base = each.base.size if each.base else 0
                logs = sum(log.size for log in each.logs)
                sizes[each.path] = base + int(logs * self.growth)
                self.written += sizes[each.path]
                self.view.add_files(each.partition, {each.output: sizes[each.path]})
                self.files[each.path] = ((each.partition, each.file_id), True, plan.instant, completion)
                under = self.merged[each.at(each.base.name)] if each.base else frozenset()
                self.merged[each.path] = under | {self.files[each.at(log.name)][2] for log in each.logs}
        self.live.done(plan, completion, sizes)
        self.replacing.append(completion)
        self.services.append("compaction")
        return completion

    def cancel(self, plan: Plan) -> None:
        self.plans.remove(plan)
        self.live.cancel(plan)

    # --- cleaning and archiving ---

    def savepoint(self) -> None:
        newest = self.timeline.writes()[-1]
        self.savepoints[newest.time] = newest.completion
        self.timeline.add([Instant(newest.time, "savepoint", State.COMPLETED, self.next_time())])

    def drop_savepoint(self, instant: str) -> None:
        del self.savepoints[instant], self.timeline.savepoints[instant]

    def choose_dead(self) -> Cleanable:
        return choose_dead_files(
            self.view.groups(),
            self.timeline.writes(),
            self.settings,
            now=self.now,
            completion_of=self.view.completion_of,
            unfinished=self.open,
            savepoints=self.savepoints.values(),
            leases=self.leases,
            plans=self.plans,
            cleaned=self.cleaned,
        )

    def clean(self) -> Cleanable:
        chosen = self.choose_dead()
        self.cleaned_at, self.kept = self.commits, chosen.kept
        if chosen.earliest is not None:
            self.replacing = [each for each in self.replacing if each > chosen.earliest.completion]
        if chosen.files:
            started = self.next_time()
            self.timeline.add([Instant(started, "clean", State.COMPLETED, self.next_time())])
            for partition, paths in chosen.files.items():
                self.view.remove_files(partition, [path.rpartition("/")[2] for path in paths])
            self.deleted += chosen.paths
            self.cleaned = chosen.earliest.completion if chosen.earliest else self.cleaned
            self.services.append("clean")
        return chosen

    @property
    def retained(self) -> Instant | None:
        return earliest_retained(self.timeline.writes(), self.settings, now=self.now, unfinished=self.open)

    def straddling(self) -> set[str]:
        points = list(self.savepoints.values())
        return straddling_instants(
            self.view.groups(), retained=self.retained, savepoints=points, completion_of=self.view.completion_of
        )

    def choose_archivable(self, straddling: set[str] | None = None) -> list[Instant]:
        return choose_archivable(
            self.timeline,
            self.settings,
            unfinished=self.open,
            plans=[plan.instant for plan in self.plans],
            savepoints=list(self.savepoints),
            straddling=self.straddling() if straddling is None else straddling,
            retained=self.retained,
            dead=self.dead,
        )

    def archive(self) -> list[Instant]:
        chosen = self.choose_archivable()
        for each in chosen:
            self.history[each.time] = each.completion
        if chosen:
            self.view.archive_until(chosen[-1].time)
            self.services.append("archive")
        return chosen

    # --- all of it ---

    def due(self) -> list[Step]:
        self.live.advance(self.now, self.overdue)
        retained = self.retained
        readable = retained.completion if retained else ""
        straddler = self.live.straddling(readable or NEVER, list(self.savepoints.values()))
        state = MaintenanceState(
            due_slices=len(self.live.due),
            urgent=self.live.urgent,
            planned_ago=self.commits - self.planned_at,
            replacing=self.replacing,
            readable=readable,
            cleaned_ago=self.commits - self.cleaned_at,
            kept=self.kept,
            completed=len(self.timeline.completed),
            archivable=len(self.choose_archivable({straddler} if straddler else set())),
        )
        return next_steps(state, self.settings)

    def maintain(self) -> None:
        """One step, the first that has something to do."""
        for step in self.due():
            if step is Step.PLAN and self.plan() is not None:
                return
            if step is Step.CLEAN and self.clean().files:
                return
            if step is Step.ARCHIVE and self.archive():
                return
