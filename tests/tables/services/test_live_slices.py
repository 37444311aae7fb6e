from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.operation import Plan
from headgate_tables.face.results import SliceLogSize
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import log_name
from headgate_tables.hudi.services.planning.live_slices import LiveSlices
from headgate_tables.hudi.services.planning.urgency import Rules, load_of
from headgate_tables.hudi.view import FileSlice
from support.simulated_table import Key, SimulatedTable
from support.strategies import effort
from support.systems import NOON

KEYS: list[Key] = [("p", "00000000-0"), ("p", "00000001-0"), ("q", "00000002-0")]
SETTINGS = TableSettings(
    compaction_commits=4,
    compaction_first_commits=2,
    compaction_seconds=75,
    compaction_log_bytes=1 << 30,
    clean_min_age=0,
    clean_commits=2,
    archive_min=6,
    archive_max=10,
)

KINDS = [
    *["commit"] * 8,
    *["plan"] * 3,
    *["finish"] * 3,
    "drop",
    "cancel",
    "clean",
    "archive",
    "savepoint",
    "drop savepoint",
    "pause",
]


def step(made: SimulatedTable, kind: str, number: int) -> None:
    if kind == "commit":
        made.commit({key: 10 * (number + 1) for index, key in enumerate(KEYS) if not number >> index & 1})
    elif kind == "plan":
        made.plan(forced=number < 2)
    elif kind in ("finish", "drop", "cancel") and made.plans:
        plan = made.plans[number % len(made.plans)]
        if kind == "cancel":
            made.cancel(plan)
        else:
            made.finish(plan, dropped=[0] if kind == "drop" else [])
    elif kind == "clean":
        made.clean()
    elif kind == "archive":
        made.archive()
    elif kind == "savepoint" and made.timeline.writes():
        made.savepoint()
    elif kind == "drop savepoint" and made.savepoints:
        made.drop_savepoint(sorted(made.savepoints)[number % len(made.savepoints)])
    elif kind == "pause":
        made.now += number * 10_000


def judged(made: SimulatedTable) -> dict[Key, Any]:
    """What the rules say of each slice that no plan holds, from the view."""
    rules = Rules.at(made.settings, made.now, made.overdue)
    planned = {(each.partition, each.file_id) for plan in made.plans for each in plan.operations}
    free: list[FileSlice] = [part for part in made.view.latest_slices() if (part.partition, part.file_id) not in planned]
    found = {(part.partition, part.file_id): rules.urgency(load_of(part)) for part in free}
    return {key: urgency for key, urgency in found.items() if urgency is not None}


def agree(made: SimulatedTable, live: LiveSlices) -> None:
    live.advance(made.now, made.overdue)
    due = judged(made)
    assert set(live.due) == due.keys()
    assert live.urgent == any(urgency.rank == 2 for urgency in due.values())
    slices = list(made.view.latest_slices())
    assert live.largest.log_files == max((len(part.logs) for part in slices), default=0)
    assert live.largest.log_bytes == max((part.log_bytes for part in slices), default=0)
    retained = made.retained.completion if made.retained else "9"
    exactly = min(made.straddling(), default="")
    if made.savepoints:  # of a savepoint it only knows that the slice was there, and may hold back a little more
        assert not exactly or live.straddling(retained, list(made.savepoints.values())) <= exactly
    else:
        assert live.straddling(retained, []) == exactly


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7)), min_size=20, max_size=80), st.sampled_from([12, 1000]))
@effort(200)
def test_kept_file_by_file_it_says_the_same_as_a_look_at_everything(steps: list[tuple[str, int]], most: int) -> None:
    made = SimulatedTable(replace(SETTINGS, max_log_files=most))
    for kind, number in steps:
        step(made, kind, number)
        agree(made, made.live)
        agree(made, LiveSlices.from_view(made.view.groups(), made.plans, made.settings, made.view.completion_of))


def test_logs_of_an_open_plan_count_for_readers_but_not_for_the_next_plan() -> None:
    made = SimulatedTable(replace(SETTINGS, compaction_first_commits=2))
    for _ in range(3):
        made.commit({KEYS[0]: 10})
    plan = made.plan()
    assert isinstance(plan, Plan)
    made.commit({KEYS[0]: 10})
    assert not made.live.due
    assert (made.live.largest.log_files, made.live.largest.log_bytes) == (4, 40)
    made.finish(plan)
    assert (made.live.largest.log_files, made.live.largest.log_bytes) == (1, 10)


def test_slices_become_due_by_the_age_of_their_oldest_log_though_nothing_is_committed_any_more() -> None:
    made = SimulatedTable(SETTINGS)  # due at 75 s; its first instants are of 1 ms and of 2 ms past NOON
    made.commit({KEYS[0]: 10})
    made.commit({KEYS[1]: 10})

    def due_after(ms: int) -> set[Key]:
        made.live.advance(NOON + ms, overdue="")
        return set(made.live.due)

    assert due_after(75_001) == set()
    assert due_after(75_002) == {KEYS[0]}
    assert due_after(75_003) == {KEYS[0], KEYS[1]}
    assert not made.live.urgent


def test_the_age_of_what_an_open_plan_holds_counts_again_when_the_plan_is_given_up() -> None:
    made = SimulatedTable(SETTINGS)
    made.commit({KEYS[0]: 10})
    plan = made.plan(forced=True)
    assert plan is not None
    made.commit({KEYS[0]: 10})  # its instant is 1 ms younger
    made.live.advance(NOON + 75_002, overdue="")
    assert not made.live.due
    made.live.advance(NOON + 75_003, overdue="")
    assert not made.live.due, "a slice of an open plan waits for it"
    made.cancel(plan)
    assert set(made.live.due) == {KEYS[0]}


def test_slices_that_hold_archiving_back_become_due_though_nothing_is_committed_any_more() -> None:
    made = SimulatedTable(replace(SETTINGS, compaction_seconds=86_400))
    made.commit({KEYS[0]: 10})
    made.live.advance(made.now, overdue=format_time(NOON + 1))
    assert not made.live.due
    made.live.advance(made.now, overdue=format_time(NOON + 2))
    assert set(made.live.due) == {KEYS[0]}


def test_log_files_of_change_data_make_no_slice_longer_or_due_and_begin_none() -> None:
    """Spark writes them beside the logs when a table keeps change data; nobody merges them."""
    made = SimulatedTable(replace(SETTINGS, max_log_files=8))
    made.commit({KEYS[0]: 10})
    [log] = made.view.latest_slices()
    for key in KEYS[:2]:
        changes = {f"{log_name(key[1], log.logs[0].instant, version, '0-1-2')}.cdc": 1_000 for version in (1, 2, 3, 4)}
        made.view.add_files(key[0], changes)
        made.live.add_files(key[0], changes)
    agree(made, made.live)
    assert made.live.largest == SliceLogSize(1, 10)
    assert not made.live.due
    assert made.live.log_size_of(KEYS[1]) == SliceLogSize()
    assert [part.logs for part in made.view.latest_slices()] == [log.logs]
