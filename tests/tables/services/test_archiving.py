from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.services.retention.archiving import HEADROOM, choose_archivable
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.instant import Instant, State
from support.simulated_table import Key, SimulatedTable
from support.strategies import effort
from support.systems import NOON

KEYS: list[Key] = [("p", "00000000-0"), ("p", "00000001-0"), ("q", "00000002-0")]
SETTINGS = TableSettings(clean_commits=2, clean_min_age=0, archive_min=20, archive_max=40)


def time(number: int) -> str:
    return format_time(NOON + 1000 * number)


def timeline(instants: int) -> Timeline:
    """Instants 0, 10, 20, …, each completed 5 later."""
    made = Timeline()
    actions = ["deltacommit", "clean", "commit", "rollback"]
    made.add(Instant(time(10 * i), actions[i % 4], State.COMPLETED, time(10 * i + 5)) for i in range(instants))
    return made


def archivable(made: Timeline, *, settings: TableSettings = SETTINGS, forced: bool = False, **blockers: Any) -> list[str]:
    known: dict[str, Any] = {key: [] for key in ("unfinished", "plans", "savepoints", "straddling", "dead", "replacing")}
    arguments = {"retained": None, **known, **blockers}
    return [each.time for each in choose_archivable(made, settings, forced=forced, **arguments)]


def times(count: int) -> list[str]:
    return [time(10 * number) for number in range(count)]


def test_the_timeline_is_cut_down_to_its_least_before_it_is_longer_than_its_most() -> None:
    assert archivable(timeline(40 - HEADROOM)) == []
    assert archivable(timeline(41 - HEADROOM)) == times(16)
    assert archivable(timeline(50)) == times(30)


def test_by_hand_it_is_cut_down_whatever_its_length() -> None:
    assert archivable(timeline(22), forced=True) == times(2)
    assert archivable(timeline(20), forced=True) == archivable(timeline(5), forced=True) == []


def test_settings_that_are_close_together_still_leave_something_to_cut() -> None:
    settings = replace(SETTINGS, archive_min=4, archive_max=5)
    assert archivable(timeline(5), settings=settings) == []
    assert archivable(timeline(6), settings=settings) == times(2)


@pytest.mark.parametrize("blocker", ["unfinished", "plans", "savepoints", "straddling", "dead", "replacing"])
def test_nothing_goes_from_the_oldest_instant_on_that_somebody_needs(blocker: str) -> None:
    assert archivable(timeline(41), **{blocker: [time(150), time(70)]}) == times(7)
    assert archivable(timeline(41), **{blocker: [time(69)]}) == times(7)


def test_pending_instants_and_savepoints_of_the_timeline_itself_hold_too() -> None:
    for instant in (Instant(time(36), "compaction", State.REQUESTED), Instant(time(40), "savepoint", State.COMPLETED, time(99))):
        made = timeline(41)
        made.add([instant])
        assert archivable(made) == times(4)


def test_what_the_policy_retains_stays_and_what_completed_after_it_too() -> None:
    made = timeline(41)
    assert archivable(made, retained=made.completed[time(80)]) == times(8)
    made.add([Instant(time(31), "commit", State.COMPLETED, time(86))])
    assert archivable(made, retained=made.completed[time(80)]) == times(4)


def test_what_completes_above_an_open_plan_will_straddle_its_base_file_and_stays() -> None:
    made = timeline(41)
    made.add([Instant(time(31), "deltacommit", State.COMPLETED, time(77))])
    assert archivable(made, plans=[time(76)]) == times(4)
    assert archivable(made, plans=[time(78)])[:6] == sorted([*times(5), time(31)])


def test_a_reader_without_the_history_would_lose_a_straddling_log_of_an_archived_instant() -> None:
    """Fact HF8."""
    made = SimulatedTable(replace(SETTINGS, clean_commits=1, archive_min=1, archive_max=2, clean_automatic=False))
    made.commit(dict.fromkeys(KEYS, 10))
    plan = made.plan(forced=True)
    assert plan is not None
    straddling = made.open[0]
    made.finish(plan)
    for _ in range(3):
        made.commit(dict.fromkeys(KEYS, 10))
    now = made.timeline.writes()[-1].completion
    assert straddling < plan.instant < (made.timeline.completion(straddling) or "")
    assert min(made.straddling()) == straddling
    made.archive()
    assert made.timeline.start == straddling
    assert made.read(now, history=False) == made.committed(now)
    # The same with the rule left out:
    made.history[straddling] = made.timeline.completed[straddling].completion
    made.timeline.drop_until(straddling)
    assert made.read(now) == made.committed(now)
    assert {instant for _, instant in made.committed(now) - made.read(now, history=False)} == {straddling}


KINDS = [*["commit"] * 8, *["compact"] * 3, *["clean"] * 2, *["archive"] * 3, "plan", "finish", "finish", "cancel"]
KINDS += ["savepoint", "drop savepoint", "die", "sweep"]


def step(made: SimulatedTable, kind: str, number: int) -> None:
    if kind == "commit":
        made.commit({key: 10 for index, key in enumerate(KEYS) if not number >> index & 1})
    elif kind == "compact":
        if (plan := made.plan(forced=True)) is not None:
            made.finish(plan)
    elif kind == "plan":
        made.plan(forced=True)
    elif kind in ("finish", "cancel") and made.plans:
        (made.finish if kind == "finish" else made.cancel)(made.plans[number % len(made.plans)])
    elif kind == "clean":
        made.clean()
    elif kind == "archive":
        made.archive()
    elif kind == "savepoint" and made.timeline.writes():
        made.savepoint()
    elif kind == "drop savepoint" and made.savepoints:
        made.drop_savepoint(sorted(made.savepoints)[number % len(made.savepoints)])
    elif kind == "die":  # a takeover: the open checkpoints are dead, their files not yet swept
        made.dead += made.open
        made.open = [made.next_time(), made.next_time()]
    elif kind == "sweep":
        made.dead.clear()


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7)), min_size=20, max_size=80),
    st.integers(1, 4),
    st.sampled_from(["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"]),
)
@effort(200)
def test_readers_with_and_without_the_history_find_every_row_as_of_every_commit_that_is_promised(
    steps: list[tuple[str, int]], commits: int, policy: str
) -> None:
    settings = replace(SETTINGS, clean_commits=commits, archive_min=commits + 1, archive_max=commits + 3, clean_policy=policy)
    made = SimulatedTable(settings)
    for kind, number in steps:
        before = sorted(made.timeline.completed)
        step(made, kind, number)
        archived = sorted(set(before) - set(made.timeline.completed))
        assert archived == before[: len(archived)]
        if archived:
            blockers = [*made.open, *made.dead, *made.savepoints, *(plan.instant for plan in made.plans)]
            assert archived[-1] < min(blockers)
        if kind in ("archive", "clean"):
            check_readers(made)


def check_readers(made: SimulatedTable) -> None:
    writes = made.timeline.writes()
    by_policy = made.retained.completion if made.retained else max([each.completion for each in writes], default="9")
    promised = [each.completion for each in writes if each.completion >= max(by_policy, made.cleaned)]
    for point in [*promised, *made.savepoints.values()]:
        assert made.read(point) == made.committed(point)
        assert made.read(point, history=False) == made.committed(point)


@pytest.mark.slow
@given(st.lists(st.integers(0, 7), min_size=100, max_size=150), st.integers(0, 6), st.sampled_from([0, 9]))
@effort(25)
def test_with_maintenance_after_every_commit_the_timeline_never_outgrows_its_setting(
    touched: list[int], takes: int, age: float
) -> None:
    settings = replace(SETTINGS, clean_commits=4, archive_min=20, archive_max=40, compaction_commits=6, clean_min_age=age)
    made = SimulatedTable(settings, step_ms=1000)
    ready: list[int] = []
    for number in touched:
        made.commit({key: 10 for index, key in enumerate(KEYS) if number >> index & 1})
        while ready and ready[0] <= made.commits:
            made.finish(made.plans[0])
            ready.pop(0)
        made.maintain()
        ready += [made.commits + takes] * (len(made.plans) - len(ready))
        assert len(made.timeline.completed) <= settings.archive_max
    assert made.services.count("archive") >= 3
    assert made.read("9") == made.read("9", history=False) == made.committed("9")
