"""Bytes that a table writes for each byte ingested: many commits with 30 % updates, compacted as it goes with default settings.

Runs in a process of its own. Every file that was created is still there at the end, and is counted: nothing is cleaned so soon.
"""

from collections import deque
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from hudi import HudiReadOptions, HudiTable

from bench.compaction.under_ingest import data_bytes
from bench.tables.compare import differences
from bench.tables.usage import Moment, folder_bytes, peak_bytes
from headgate_tables import hudi
from headgate_tables.face.operation import Plan
from headgate_tables.hudi.services.compaction.execution import compact_slice
from support.events import EVENTS_SCHEMA

BUCKETS = 8
LAG = 2
"""Commits between a plan and its end: compactors work while rows come in."""


def run(folder: str, feed: str, oracle: str, commits: int, loaded: int, minor: str = "0") -> dict[str, object]:
    """``loaded``: rows of the feed that lie in base files before the first commit; the others are spread over ``commits``.
    ``minor``: the value of the setting for minor compactions.

    Bytes without what was there before: ``logs`` of commits, ``rewritten`` by compactions, ``all`` with the timeline and commit
    log, ``arrow`` as handed in.
    ``most_logs``: log files of a slice at any commit; ``plans``; ``cpu`` seconds of everything, and those of merges.
    """
    rows = pa.ipc.open_file(pa.memory_map(feed)).read_all()
    table = hudi.create_table(f"file://{folder}", EVENTS_SCHEMA, record_key="event_id", ordering="version", buckets=BUCKETS)
    table.configure({"headgate.compaction.minor.fraction": minor})
    if loaded:
        table.upsert(rows.slice(0, loaded))
        table.compact()
    before, all_before = data_bytes(Path(folder)), folder_bytes(Path(folder))
    work = _Work(table)
    begin = Moment.now()
    starts = [loaded + (rows.num_rows - loaded) * number // commits for number in range(commits + 1)]
    for number, (start, stop) in enumerate(pairwise(starts)):
        table.upsert(rows.slice(start, stop - start))
        work.after_commit(number)
    work.finish(commits)
    used = Moment.now() - begin
    found = pa.Table.from_batches(HudiTable(f"file://{folder}").read(HudiReadOptions(projection=EVENTS_SCHEMA.names)))
    if wrong := differences(found, oracle):
        raise AssertionError(f"the table is not what was sent: {wrong}")
    logs, bases = (after - earlier for after, earlier in zip(data_bytes(Path(folder)), before, strict=True))
    return {
        "logs": logs - work.merged_logs,
        "rewritten": bases + work.merged_logs,
        "all": folder_bytes(Path(folder)) - all_before,
        "arrow": rows.slice(loaded).nbytes,
        "most_logs": work.most_logs,
        "plans": work.plans,
        "cpu": used.cpu,
        "merge_cpu": work.cpu,
        "peak": peak_bytes(),
    }


class _Work:
    """What the owner and its compactors do after each commit."""

    def __init__(self, table: hudi.Table) -> None:
        self._table = table
        self._waiting: deque[tuple[int, Plan]] = deque()
        self.most_logs = self.plans = self.merged_logs = 0
        self.cpu = 0.0

    def after_commit(self, number: int) -> None:
        """Maintains, and ends the plans that are old enough."""
        while (done := self._table.maintain()).more:
            if done.plan is not None:
                self._waiting.append((number, done.plan))
                self.plans += 1
        if (figures := self._table.largest_slice()) is not None:
            self.most_logs = max(self.most_logs, figures.log_files)
        while self._waiting and self._waiting[0][0] + LAG <= number:
            self._execute(self._waiting.popleft()[1])

    def finish(self, number: int) -> None:
        """Ends all plans."""
        self.after_commit(number + LAG)

    def _execute(self, plan: Plan) -> None:
        context = self._table._context()
        begin = Moment.now()
        finished = [
            compact_slice(
                context.store,
                context.definition,
                context.layout,
                each,
                plan.instant,
                stage=context.stage,
                settings=context.settings,
            )
            for each in plan.operations
        ]
        self.cpu += (Moment.now() - begin).cpu
        self.merged_logs += sum(each.log.size for each in finished if each.log is not None)
        self._table.finish_plan(plan.instant, finished)
