"""Times decide which slice a row is on, and the order in which rows merge: rules TM1, TM2 and DE3 through a whole table.

tests/interop/test_table_services.py asks Spark the same.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate_tables.errors import TransactionError
from support.replay import Entry
from support.served import Served
from support.systems import SetClock, system

SETTINGS = {"headgate.log.retire.after": "0"}


@dataclass
class RunningClock(SetClock):
    """Goes on by ``tick`` milliseconds with every look at it."""

    tick: int = 1

    def now_ms(self) -> int:
        self.now += self.tick
        return self.now


@pytest.fixture
def clock() -> RunningClock:
    return RunningClock()


@pytest.fixture(params=[True, False], ids=["event time", "commit time"])
def served(request: pytest.FixtureRequest, tmp_path: Path, clock: RunningClock) -> Served:
    made = Served(tmp_path / "t", event_time=request.param, system=system(clock), settings=SETTINGS)
    made.write(row("u", 5, "logged"), row("w", 5, None), row("x", 5, "logged"))
    return made


def row(key: str, ordering: int, value: str | None, partition: str = "a") -> Entry:
    """With ``value`` None a delete."""
    return Entry((partition, key), ordering, value)


def assert_right(served: Served) -> None:
    """By us and by hudi-rs."""
    served.assert_shown()
    served.assert_read_optimized()
    served.assert_past(None, served.points()[-2:])
    served.assert_changed(None, served.ranges()[-3:])


def finish_and_compact_once_more(served: Served) -> None:
    """The open plan, rows behind it, the next compaction: all must be right at every step."""
    [plan] = served.table.plans.values()
    assert_right(served)
    served.finish(plan)
    assert_right(served)
    served.write(row("w", 4, "behind"), row("u", 5, "behind"))
    assert_right(served)
    assert served.compact().completion
    assert_right(served)
    assert served.table.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("step", [-3_000, 0])
def test_tm1_a_commit_completes_after_the_plan_that_was_made_before_it_whatever_the_clock_does(
    served: Served, clock: RunningClock, step: int
) -> None:
    """A completion time before the plan's would put the log on the slice that the plan has pinned without it."""
    served.begin(row("u", 6, "open"), row("new", 1, "open"), row("x", 6, None))
    clock.tick = 1 if step else 0
    plan = served.plan()
    clock.now += step
    served.commit()
    assert served.replay.commits[-1].completion > plan.instant
    finish_and_compact_once_more(served)


@pytest.mark.slow
@pytest.mark.parametrize("step", [-3_000, 0])
def test_tm1_a_plan_is_younger_than_every_commit_that_it_takes_whatever_the_clock_does(
    served: Served, clock: RunningClock, step: int
) -> None:
    clock.tick = 1 if step else 0
    served.write(row("u", 6, "pinned"), row("new", 1, "pinned"), row("x", 6, None))
    clock.now += step
    plan = served.plan()
    assert plan.instant > served.replay.commits[-1].completion
    assert [len(each.logs) for each in plan.operations] == [4]  # rows and deletes lie in files of their own
    served.write(row("new", 2, "behind"))
    finish_and_compact_once_more(served)


@pytest.mark.slow
def test_tm1_a_plan_and_commits_of_one_millisecond_are_in_order_also_for_the_next_owner(
    served: Served, clock: RunningClock
) -> None:
    clock.tick = 0
    plan = served.plan()
    served.reopen()
    clock.now -= 3_000
    served.write(row("new", 1, "next owner"))
    assert served.replay.commits[-1].completion > plan.instant
    assert served.replay.commits[-1].instant > plan.instant
    finish_and_compact_once_more(served)


@pytest.mark.slow
def test_tm2_rows_requested_before_a_compaction_and_completed_after_it_lie_on_its_slice(served: Served) -> None:
    """Fact HF2. Before it completes, after that, and after the next one."""
    straddling = [
        served.begin(row("u", 5, "first"), row("w", 5, "first")),
        served.begin(row("u", 5, "second"), row("new", 1, None)),
    ]
    plan = served.plan()
    assert all(each.instant < plan.instant for each in straddling)
    assert not {each.instant for each in straddling} & {log.name.split("_")[1][:17] for log in plan.operations[0].logs}
    served.commit()
    assert_right(served)
    served.finish(plan)
    assert_right(served)
    served.commit()
    assert_right(served)
    served.write(row("w", 5, None))
    assert_right(served)
    assert served.compact().completion
    assert_right(served)


@pytest.mark.slow
def test_ro2_an_older_transaction_holds_a_younger_one_back_also_around_a_plan(served: Served) -> None:
    older = served.begin(row("u", 5, "older"), row("x", 5, None))
    younger = served.begin(row("u", 5, "younger"), row("x", 5, "younger"))
    served.plan()
    with pytest.raises(TransactionError, match="older and still open"):
        younger.commit()
    assert not older.ended
    served.commit()
    served.commit()
    finish_and_compact_once_more(served)


@pytest.mark.slow
def test_de3_a_slice_waits_while_an_instant_older_than_one_of_its_logs_is_pending(served: Served) -> None:
    """Else the older row, which merges before the younger one, would be merged after it: on top of what was compacted."""
    served.begin(row("u", 5, "older"), row("new", 5, None))
    served.begin(row("u", 5, "younger"), row("new", 5, "younger"), row("w", 5, "younger", "b"))
    # Rule RO2 lets none overtake, but writers that share a table do.
    served.table._opened.log._reservations._open.reverse()  # type: ignore[union-attr]
    served.commit(younger=True)
    assert served.table.plan_compaction(forced=True) is None
    assert_right(served)
    served.commit()
    assert_right(served)
    before = served.replay.rows()
    assert served.compact().completion
    assert served.replay.rows() == before
    assert_right(served)
