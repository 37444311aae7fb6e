"""A table that takes no rows any more: what has grown old is compacted all the same."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.hudi.services.maintaining import LONGEST_WAIT_MS
from support.systems import NOON, SetClock, system
from support.tables import create, rows

AGE_MS = 3_600_000
"""At which a slice is due, with the settings that every table has."""
SECOND = 1_000


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def table(tmp_path: Path, clock: SetClock) -> hudi.Table:
    """A slice with a log of NOON in p, and one with a log of half a minute later in q; the clock stands there."""
    made = create(tmp_path, buckets=1, system=system(clock))
    made.upsert(pa.concat_tables([rows(("a", 1, "x"), part=part) for part in "pq"]))
    made.upsert(rows(("a", 2, "x"), part="p"))
    clock.now += 30 * SECOND
    for part in "rs":  # two instants are reserved ahead, and these are of NOON
        made.upsert(rows(("a", 1, "x"), part=part))
    made.upsert(rows(("a", 2, "x"), part="q"))
    return made


def maintained(table: hudi.Table) -> list[str]:
    """The partitions of the plan that is made, if any; it is done then."""
    while (step := table.maintain()).more and step.plan is None:
        pass
    if step.plan is None:
        return []
    assert table.compact().instant == step.plan.instant
    return sorted(each.partition for each in step.plan.operations)


def test_a_slice_that_has_grown_old_is_planned_though_no_row_comes(table: hudi.Table, clock: SetClock) -> None:
    clock.now = NOON + AGE_MS - SECOND
    assert maintained(table) == []
    clock.now = NOON + AGE_MS + SECOND
    assert maintained(table) == ["p"], "and not the younger one"


@pytest.mark.parametrize("trigger", ["NUM_COMMITS", "NUM_AND_TIME"])
def test_a_table_of_which_age_does_not_count_is_left_alone(table: hudi.Table, clock: SetClock, trigger: str) -> None:
    table.configure({"hoodie.compact.inline.trigger.strategy": trigger})
    clock.now += 10 * AGE_MS
    assert maintained(table) == []


def test_slices_that_are_due_soon_after_a_plan_wait_a_minute_for_each_other_and_not_for_commits(
    table: hudi.Table, clock: SetClock
) -> None:
    clock.now = NOON + AGE_MS + SECOND
    assert maintained(table) == ["p"]
    clock.now += 30 * SECOND
    assert maintained(table) == [], "the one in q is due since a second"
    clock.now += LONGEST_WAIT_MS - 30 * SECOND - 1
    assert maintained(table) == []
    clock.now += 1
    assert maintained(table) == ["q"]


def test_a_new_owner_tells_how_full_slices_are_before_it_does_anything_about_them(table: hudi.Table, clock: SetClock) -> None:
    """Its checkpoints wait for the count."""
    clock.now = NOON + AGE_MS + SECOND
    with hudi.open_table(table.url, system=system(clock)) as owner:
        owner.own()
        while owner.largest_slice() is None:
            step = owner.maintain()
            assert (step.plan, step.did, step.more) == (None, "", True)
        step = owner.maintain()
        assert step.plan is not None
