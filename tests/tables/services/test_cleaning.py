from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.services.retention.cleaning import choose_dead_files
from headgate_tables.hudi.timeline.instant import Instant, State
from support.simulated_table import Key, SimulatedTable
from support.strategies import effort

KEYS: list[Key] = [("p", "00000000-0"), ("p", "00000001-0"), ("q", "00000002-0")]
SETTINGS = TableSettings(clean_commits=3, clean_min_age=0)
HOUR_MS = 3_600_000


def table(**settings: Any) -> SimulatedTable:
    return SimulatedTable(replace(SETTINGS, **settings))


def commit(made: SimulatedTable, times: int = 1) -> None:
    for _ in range(times):
        made.commit(dict.fromkeys(KEYS, 10))


def compact(made: SimulatedTable) -> str:
    plan = made.plan(forced=True)
    assert plan is not None
    return made.finish(plan)


def test_an_old_slice_goes_whole_once_the_commit_that_replaced_it_is_the_oldest_retained() -> None:
    made = table()
    commit(made, 2)
    logs = made.there()
    compact(made)
    commit(made)
    assert not made.clean().files
    commit(made)
    cleaned = made.clean()
    assert set(cleaned.paths) == logs
    assert cleaned.bytes == 10 * len(logs)
    assert cleaned.earliest is not None
    assert cleaned.earliest.action == "commit"
    assert cleaned.files.keys() == {"p", "q"}


def test_base_and_logs_of_an_old_slice_go_together() -> None:
    made = table()
    commit(made)
    compact(made)
    commit(made)
    old = made.there()
    compact(made)
    commit(made, 2)
    assert set(made.clean().paths) == old


def test_by_hours_what_the_table_was_that_long_ago_stays() -> None:
    made = table(clean_policy="KEEP_LATEST_BY_HOURS", clean_hours=2, clean_commits=1)
    commit(made)
    made.now += 5 * HOUR_MS
    compact(made)
    made.now += 2 * HOUR_MS - 20_000
    commit(made)
    assert not made.choose_dead().files  # the compaction is 10 seconds younger than two hours
    commit(made, 2)
    assert len(made.clean().paths) == len(KEYS)


def test_by_file_versions_each_group_keeps_so_many_slices() -> None:
    made = table(clean_policy="KEEP_LATEST_FILE_VERSIONS", clean_versions=2)
    commit(made)
    first = made.there()
    compact(made)
    commit(made)
    assert not made.clean().files
    replaced = compact(made)
    cleaned = made.clean()
    assert set(cleaned.paths) == first
    assert cleaned.earliest is not None
    assert cleaned.earliest.completion < replaced  # the first compaction: as of it all groups have their files


def test_a_file_stays_for_its_age_whatever_the_policy() -> None:
    for policy in ("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"):
        made = table(clean_policy=policy, clean_versions=1, clean_commits=1, clean_min_age=95.0)
        commit(made)
        compact(made)
        commit(made, 9)
        assert not made.clean().files
        commit(made)
        assert len(made.clean().paths) == len(KEYS)


def test_a_file_stays_for_its_age_also_when_the_commits_before_it_are_archived() -> None:
    made = table(clean_commits=1, clean_min_age=100.0, archive_min=2, archive_max=3)
    commit(made, 3)
    compact(made)
    commit(made, 6)
    made.archive()
    assert made.timeline.start > min(made.history)
    assert not made.clean().files
    made.cleaned = made.timeline.writes()[0].completion  # what is archived cannot be read either
    assert not made.clean().files


@pytest.mark.parametrize("holder", ["savepoint", "lease", "plan"])
def test_what_a_savepoint_or_a_reader_or_a_plan_needs_stays_and_then_goes(holder: str) -> None:
    """Rule D3."""
    made = table(clean_commits=1)
    commit(made, 2)
    held = made.there()
    plan = None
    if holder == "savepoint":
        made.savepoint()
    elif holder == "lease":
        made.leases.append(made.timeline.writes()[-1].completion)
    else:
        plan = made.plan(forced=True)
        assert plan is not None
    if plan is None:
        compact(made)
    else:
        made.finish(plan)
        made.plans.append(plan)  # a plan of a foreign writer that another compaction overtook
    commit(made)
    chosen = made.clean()
    assert not chosen.files
    assert chosen.kept == len(held)
    made.leases.clear()
    made.plans.clear()
    for instant in list(made.savepoints):
        made.drop_savepoint(instant)
    assert set(made.clean().paths) == held


def test_the_retained_commit_is_never_later_than_a_pending_instant() -> None:
    made = table(clean_commits=1)
    commit(made)
    pending = made.open[0]
    compact(made)
    made.open = [*made.open, made.next_time()]
    for _ in range(5):  # the oldest open checkpoint stays open: commits of others pass it
        made.open.remove(pending)
        commit(made)
        made.open = [pending, *made.open]
    assert not made.clean().files
    made.open.remove(pending)
    assert len(made.clean().paths) == len(KEYS)


def test_a_slice_whose_base_completed_after_a_newer_one_is_needed_no_longer_than_what_it_covered() -> None:
    made = table(clean_commits=1)
    commit(made)
    early, late = made.next_time(), made.next_time()  # of plans for the same slices, as only another program makes them
    for instant in (late, early):
        made.timeline.add([Instant(instant, "commit", State.COMPLETED, made.next_time())])
        for partition, file_id in KEYS:
            made.view.add_files(partition, {base_name(file_id, "0-0-0", instant): 1})
    commit(made, 2)
    made.leases = [made.timeline.completion(late) or ""]
    dead = made.clean().paths
    assert len(dead) == 2 * len(KEYS)  # the logs, and the base files that nobody ever read
    assert not any(late in path for path in dead)


def test_a_reader_at_the_very_commit_that_replaced_a_slice_does_not_need_it() -> None:
    made = table(clean_commits=1)
    commit(made)
    last = made.timeline.writes()[-1].completion
    replaced = compact(made)
    commit(made, 2)
    made.leases = [last]
    assert not made.choose_dead().files
    made.leases = [replaced]
    assert len(made.choose_dead().paths) == len(KEYS)


def test_a_replaced_group_goes_completely() -> None:
    made = table()
    commit(made, 2)
    group = next(made.view.groups())
    writes = made.timeline.writes()

    def dead(replaced_at: str) -> list[str]:
        chosen = choose_dead_files(
            [],
            writes,
            made.settings,
            now=made.now,
            completion_of=made.view.completion_of,
            replaced=[(group, replaced_at)],
        )
        return chosen.paths

    horizon = writes[0].completion
    assert dead(horizon + "1") == []
    assert sorted(dead(horizon)) == sorted(f"p/{name}" for name in group.logs)


def test_what_is_gone_already_keeps_the_horizon_where_it_was_when_more_is_to_be_retained() -> None:
    made = table(clean_commits=1)
    commit(made, 2)
    compact(made)
    commit(made, 2)
    cleaned = made.clean()
    made.settings = replace(made.settings, clean_commits=4)
    again = made.clean()
    assert again.earliest == cleaned.earliest


KINDS = [*["commit"] * 6, *["compact"] * 4, *["clean"] * 3, "plan", "finish", "cancel"]
KINDS += ["savepoint", "drop savepoint", "lease", "release", "archive", "pause"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7)), min_size=15, max_size=60)
POLICIES = st.builds(
    lambda policy, commits, versions, age: replace(
        SETTINGS,
        clean_policy=policy,
        clean_commits=commits,
        clean_hours=1,
        clean_versions=versions,
        clean_min_age=age,
        archive_min=commits + 2,
        archive_max=commits + 6,
    ),
    st.sampled_from(["KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.0, 25.0, 70.0]),
)


def step(made: SimulatedTable, kind: str, number: int) -> None:
    if kind == "commit":
        made.commit({key: 10 for index, key in enumerate(KEYS) if not number >> index & 1})
    elif kind == "compact":
        if (plan := made.plan(forced=True)) is not None:
            made.finish(plan)
    elif kind == "plan" and len(made.plans) < 3:
        made.plan(forced=True)
    elif kind in ("finish", "cancel") and made.plans:
        plan = made.plans[number % len(made.plans)]
        if kind == "cancel":
            made.cancel(plan)
        else:
            made.finish(plan, dropped=[0] if number == 7 and len(plan.operations) > 1 else [])
    elif kind == "clean":
        made.clean()
    elif kind == "savepoint" and made.timeline.writes():
        made.savepoint()
    elif kind == "drop savepoint" and made.savepoints:
        made.drop_savepoint(sorted(made.savepoints)[number % len(made.savepoints)])
    elif kind == "lease" and made.timeline.writes():
        made.leases.append(made.timeline.writes()[-1].completion)
    elif kind == "release" and made.leases:
        made.leases.pop(number % len(made.leases))
    elif kind == "archive":
        made.archive()
    elif kind == "pause":
        made.now += number * 600_000


def retained_points(made: SimulatedTable, earliest: str) -> list[str]:
    commits = [each[3] for each in made.files.values()]
    return sorted({point for point in commits if point >= earliest} | {format_time(made.now + 10**9)})


@pytest.mark.slow
@given(STEPS, POLICIES)
@effort(300)
def test_cleaning_takes_nothing_that_is_still_read_and_leaves_nothing_that_is_not(
    steps: list[tuple[str, int]], settings: TableSettings
) -> None:
    made = SimulatedTable(settings)
    for kind, number in [*steps, ("clean", 0)]:
        before = made.there()
        step(made, kind, number)
        held = [*made.savepoints.values(), *made.leases]
        points = retained_points(made, made.cleaned) if made.cleaned else [format_time(made.now + 10**9)]
        for point in [*points, *held]:
            assert not made.visible(point) - made.there(), (kind, point)
        pinned = {each.at(log.name) for plan in made.plans for each in plan.operations for log in each.logs}
        assert pinned <= made.there()
        too_young = format_time(made.now - int(settings.clean_min_age * 1000))
        for point in (each[3] for each in made.files.values() if each[3] > too_young):
            assert not made.visible(point) & before - made.there(), (kind, point, "younger than the age")
    made.leases.clear()
    made.plans.clear()
    for instant in list(made.savepoints):
        made.drop_savepoint(instant)
    made.clean()
    note(str(made.services))
    leaves_only_what_is_read(made)


def leaves_only_what_is_read(made: SimulatedTable) -> None:
    """By the policy's own words, for each slice that is left."""
    settings, writes = made.settings, made.timeline.writes()
    retained = writes[: -settings.clean_commits + 1 or None] or writes[:1]
    by_hours = format_time(made.now - HOUR_MS)
    settled = [each.completion for each in writes if each.time < made.open[0]]
    since = {
        "KEEP_LATEST_COMMITS": max([each for each in settled if each <= retained[-1].completion], default=""),
        "KEEP_LATEST_BY_HOURS": max([each for each in settled if each <= by_hours], default=""),
        "KEEP_LATEST_FILE_VERSIONS": "9",
    }[settings.clean_policy]
    since = min(since, format_time(made.now - int(settings.clean_min_age * 1000)))
    points = [each[3] for each in made.files.values()]
    start = max([point for point in points if point <= since], default="")
    read = {path for point in {*points, start} if point >= start for path in made.visible(point)}
    versions = settings.clean_versions if settings.clean_policy == "KEEP_LATEST_FILE_VERSIONS" else 1
    for group in made.view.groups():
        for part in group.slices()[:-versions]:
            names = {part.path(name) for name in (*((part.base,) if part.base else ()), *(log.name for log in part.logs))}
            assert names & read, "nobody reads this slice"
