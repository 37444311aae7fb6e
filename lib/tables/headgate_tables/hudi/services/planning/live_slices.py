"""Which slices are due for compaction, kept current at a cost that depends on what a commit touched, not on the table's size.

The table's owner reports each new file and each step of a plan; the rules are those of ``urgency``.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping

from headgate_tables.face.operation import Operation, Plan
from headgate_tables.face.results import SliceLogSize
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.services.planning.slice_loads import LogLoad, SliceLoad
from headgate_tables.hudi.services.planning.urgency import Rules
from headgate_tables.hudi.services.retention.archiving import straddles
from headgate_tables.hudi.services.stuck import Key, StuckSlice
from headgate_tables.hudi.timeline.instant import NEVER
from headgate_tables.hudi.view import FileGroup


class LiveSlices:
    """The live slices of one table, for one thread. ``from_view`` makes them anew after a restore, an adoption, new settings."""

    def __init__(self, settings: TableSettings) -> None:
        self._rules = Rules(settings, "", "")
        self._slices: dict[Key, SliceLoad] = {}
        self._due: dict[Key, int] = {}
        # Heaps of (instant, slice). An outdated entry is skipped when it reaches the top.
        self._ages: list[tuple[str, Key]] = []
        self._straddlers: list[tuple[str, Key]] = []
        self._overdue: dict[Key, str] = {}
        self._retired: list[tuple[str, str]] = []
        self._stuck: Mapping[Key, StuckSlice] = {}
        self._resting: set[Key] = set()
        self._most: SliceLogSize | None = SliceLogSize()

    @classmethod
    def from_view(
        cls,
        groups: Iterable[FileGroup],
        plans: Iterable[Plan],
        settings: TableSettings,
        completion_of: Callable[[str], str | None],
    ) -> "LiveSlices":
        """From a view: one pass over everything, once per ownership. ``completion_of``: see ``choose_dead_files``."""
        made = cls(settings)
        operations = {_key(each): each for plan in plans for each in plan.operations}
        for group in groups:
            made._load(group, operations.get((group.partition, group.file_id)), completion_of)
        made._most = None
        return made

    def _load(self, group: FileGroup, planned: Operation | None, completion_of: Callable[[str], str | None]) -> None:
        parts = list(group.newest_first(completion_of))
        if not parts:
            return
        newest, key = parts[0][0], (group.partition, group.file_id)
        known = self._slices[key] = SliceLoad(newest.base_instant if newest.base else "", newest.base_size)
        names = {log.name for log in planned.logs} if planned else ()
        known.planned = LogLoad() if planned else None
        for log in newest.logs:
            load = known.planned if known.planned is not None and log.name in names else known.logs
            load.add(log.instant, log.size)
        for part, replaced in parts[1:]:
            oldest = part.logs[0].instant if part.logs else NEVER
            if part.logs and straddles(oldest, part.base_instant if part.base else ""):
                self._retired.append((oldest, replaced))
        self._look_anew(key, known)

    @property
    def largest(self) -> SliceLogSize:
        """The most log files and log bytes of any slice that can be compacted; logs in open plans count, since readers still
        read them.
        """
        if self._most is None:
            loads = [load for key, load in self._slices.items() if key not in self._stuck]
            self._most = SliceLogSize(max((s.files for s in loads), default=0), max((s.bytes for s in loads), default=0))
        return self._most

    def log_size_of(self, key: Key) -> SliceLogSize:
        """Log files and log bytes of one slice."""
        known = self._slices.get(key)
        return SliceLogSize(known.files, known.bytes) if known else SliceLogSize()

    def set_stuck(self, stuck: Mapping[Key, StuckSlice], now: int) -> None:
        """Which slices cannot be compacted: they do not count for ``largest``, and are due only when they do not rest."""
        if stuck.keys() != self._stuck.keys():
            self._most = None
        self._stuck = stuck
        resting = {key for key, each in stuck.items() if each.rests(now)}
        changed, self._resting = resting ^ self._resting, resting
        for key in changed & self._slices.keys():
            self._judge(key, self._slices[key])

    @property
    def due(self) -> Collection[Key]:
        """Slices that are due and in no open plan, in no order."""
        return self._due.keys()

    @property
    def urgent(self) -> bool:
        """Whether one of them is near the backpressure limits."""
        return any(rank > 1 for rank in self._due.values())

    def add_files(self, partition: str, names: Mapping[str, int]) -> None:
        """Files of a delta commit that has just completed, with their sizes."""
        for name, size in names.items():
            if (log := parse_log_name(name)) is not None:
                if not log.cdc:
                    self._add_log((partition, log.file_id), log.instant, size)
            elif (base := parse_base_name(name)) is not None:
                self._slices[partition, base.file_id] = SliceLoad(base.instant, size)

    def _add_log(self, key: Key, instant: str, size: int) -> None:
        known = self._slices.get(key)
        if known is None:
            known = self._slices[key] = SliceLoad()
        before, logs = known.straddler, known.logs
        logs.add(instant, size)
        if (
            self._most is not None
            and key not in self._stuck
            and (known.files > self._most.log_files or known.bytes > self._most.log_bytes)
        ):
            self._most = SliceLogSize(max(known.files, self._most.log_files), max(known.bytes, self._most.log_bytes))
        if logs.files == 1:
            heapq.heappush(self._ages, (logs.oldest, key))
        if known.straddler != before:
            heapq.heappush(self._straddlers, (known.straddler, key))
        self._judge(key, known)

    def plan(self, plan: Plan) -> None:
        """Notes a won PLAN slot, which holds all logs that its slices have at that moment (rule TM2)."""
        for each in plan.operations:
            known = self._slices[_key(each)]
            known.planned, known.logs = known.logs, LogLoad()
            self._due.pop(_key(each), None)

    def done(self, plan: Plan, completion: str, sizes: Mapping[str, int]) -> None:
        """Notes a won PLAN_DONE slot. ``sizes``: bytes of new files by path; operations without a base file were dropped."""
        for each in plan.operations:
            known = self._slices[_key(each)]
            if each.path in sizes:
                if known.straddler:
                    self._retired.append((known.straddler, completion))
                known.compacted(plan.instant, sizes[each.path], sizes.get(each.at(each.merged_log), 0))
            else:
                known.given_up()
            self._look_anew(_key(each), known)
        self._most = None

    def cancel(self, plan: Plan) -> None:
        """Notes a won PLAN_CANCELLED slot."""
        for each in plan.operations:
            self._slices[_key(each)].given_up()
            self._look_anew(_key(each), self._slices[_key(each)])

    def advance(self, now: int, overdue: str) -> None:
        """Notes that time has passed. ``now``: milliseconds; ``overdue``: from ``overdue_since``."""
        self._rules = Rules.at(self._rules.settings, now, overdue)
        while self._ages and self._ages[0][0] < self._rules.aged:
            instant, key = heapq.heappop(self._ages)
            if self._slices[key].logs.oldest == instant:
                self._judge(key, self._slices[key])
        while self._straddlers and self._straddlers[0][0] < overdue:
            instant, key = heapq.heappop(self._straddlers)
            if self._slices[key].straddler == instant:
                self._overdue[key] = instant
                self._judge(key, self._slices[key])

    def straddling(self, retained: str, savepoints: Collection[str]) -> str:
        """The oldest of ``straddling_instants``, or ""; with savepoints perhaps one that is a little older.

        Both arguments are completion times; ``retained`` is later than any commit when the policy retains none.
        """

        def read(straddler: str, replaced: str) -> bool:
            return replaced > retained or any(straddler < point < replaced for point in savepoints)

        while self._straddlers and self._slices[self._straddlers[0][1]].straddler != self._straddlers[0][0]:
            heapq.heappop(self._straddlers)
        self._overdue = {key: instant for key, instant in self._overdue.items() if self._slices[key].straddler == instant}
        self._retired = [entry for entry in self._retired if read(*entry)]
        known = [*(instant for instant, _ in self._retired), *self._overdue.values(), *(each for each, _ in self._straddlers[:1])]
        return min(known, default="")

    def _look_anew(self, key: Key, known: SliceLoad) -> None:
        if known.logs.files:
            heapq.heappush(self._ages, (known.logs.oldest, key))
        if known.straddler:
            heapq.heappush(self._straddlers, (known.straddler, key))
        self._judge(key, known)

    def _judge(self, key: Key, known: SliceLoad) -> None:
        planned = known.planned is not None or key in self._resting
        urgency = None if planned else self._rules.urgency(known.unplanned)
        if urgency is None:
            self._due.pop(key, None)
        else:
            self._due[key] = urgency.rank


def _key(operation: Operation) -> Key:
    return operation.partition, operation.file_id
