"""The life of a compaction plan: what it takes, what completes it, what it leaves when it goes."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import TransactionError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import State
from support.replay import Entry
from support.served import Served


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Partitions a and b, each with a base file and a log."""
    made = Served(tmp_path / "t", event_time=True)
    write(made, 3)
    return made


def write(served: Served, number: int) -> None:
    served.write(*(Entry((partition, "u"), number, f"number {number}") for partition in "ab"))


def states(table: hudi.Table, instant: str) -> dict[str, State]:
    return {each.action: each.state for each in list_instants(table._store) if each.time == instant}


def test_a_plan_that_is_done_completes_and_the_owner_knows_the_new_base_files(served: Served) -> None:
    plan = served.plan()
    served.finish(plan)
    assert served.table.plans == {}
    assert states(served.table, plan.instant)["commit"] is State.COMPLETED
    assert served.table.plan_compaction(forced=True) is None, "its logs were planned once more"
    served.assert_shown()
    write(served, 4)
    again = served.plan()
    assert {each.base.name for each in again.operations if each.base} == {each.output for each in plan.operations}
    assert [len(each.logs) for each in again.operations] == [1, 1]
    served.finish(again)
    served.assert_shown()


def test_no_slice_is_in_two_open_plans(served: Served) -> None:
    served.plan()
    write(served, 4)
    assert served.table.plan_compaction(forced=True) is None
    served.table.configure({"hoodie.compact.inline.max.delta.commits": "1"})
    assert served.table.plan_compaction() is None


def test_each_operation_is_finished_or_dropped_and_nothing_else_completes_a_plan(served: Served) -> None:
    plan = served.plan()
    done = [served.run(each, plan) for each in plan.operations]
    for results in ([], done[:1], [*done, done[0]]):
        with pytest.raises(TransactionError, match="not those of its operations"):
            served.table.finish_plan(plan.instant, results, {})
    assert plan.instant in served.table.plans
    served.table.finish_plan(plan.instant, done, {})
    with pytest.raises(TransactionError, match="no compaction"):
        served.table.finish_plan(plan.instant, done, {})
    served.take_in()
    served.assert_shown()


def test_a_late_output_of_a_dropped_operation_is_deleted_and_never_read(served: Served) -> None:
    plan = served.plan()
    [dropped] = [each for each in plan.operations if each.partition == "b"]
    served.finish(plan, drop="b")
    assert read_state(served.table._store, LOG_LAYOUT)[0].refused == {plan.instant: [dropped.path]}
    served.run(dropped, plan)
    late = served.path / dropped.path
    assert late.exists()
    write(served, 4)
    served.reopen()
    served.table.own()
    served.table.tidy()
    assert not late.exists()
    served.assert_shown()


def test_a_plan_of_which_nothing_is_finished_is_cancelled(served: Served) -> None:
    plan = served.plan()
    assert served.table.finish_plan(plan.instant, [], dict.fromkeys(plan.operations, "the test drops it")) == ""
    assert served.table.plans == {}
    assert plan.instant in read_state(served.table._store, LOG_LAYOUT)[0].dead
    served.table.tidy()
    assert states(served.table, plan.instant) == {}
    served.assert_shown()


@pytest.mark.parametrize("how", ["done", "cancelled"])
def test_what_compactors_staged_for_a_plan_goes_with_it(served: Served, how: str) -> None:
    plan = served.plan()
    staged = served.path / served.table._context().stage / f"{plan.instant}_{plan.operations[0].file_id}_killed"
    other = staged.with_name("20200101000000000_another-plan_1")
    for path in (staged, other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    if how == "done":
        served.finish(plan)
    else:
        served.table.cancel_plan(plan.instant)
    assert not staged.exists()
    assert other.exists()
