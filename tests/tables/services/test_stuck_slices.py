"""File slices that a plan went on without: they rest, are nobody else's trouble, and outlive the handle that found them."""

from collections.abc import Collection
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, MissingFileError, OptionError
from headgate_tables.face.operation import Plan
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi import Table
from headgate_tables.hudi.services.stuck import FIRST_REST_MS, LONGEST_REST_MS, StuckSlice, failed_again
from support.damage import changed, end_of_last_page, flip
from support.slices import execute
from support.systems import SetClock, system
from support.tables import as_text, by_hudi_rs, create, rows

WHY = "p/a.log at byte 7 is damaged. Restore it."
SETTINGS = {"headgate.compaction.first.delta.commits": "2", "hoodie.compact.inline.max.delta.commits": "2"}
P, Q = "p", "q"


class Owner:
    """A table with one slice in partition p and one in q, whose owner looks after it by a clock of the test's."""

    def __init__(self, folder: Path) -> None:
        self.clock = SetClock()
        self.table = create(folder, buckets=1, system=system(self.clock))
        self.table.configure(SETTINGS)

    def write(self, *partitions: str, times: int = 1) -> None:
        for _ in range(times):
            self.clock.now += 1000
            with self.table.transaction() as transaction:
                for part in partitions:
                    transaction.upsert(rows(("a", self.clock.now, "a"), part=part))

    def reopen(self) -> None:
        self.table.close()
        self.table = hudi.open_table(self.table.url, system=system(self.clock))

    def plan(self) -> Plan | None:
        """What is due now, if anything."""
        return self.table.plan_compaction()

    def maintain(self) -> Plan | None:
        """The same as the owner of a cluster comes to it, which waits for several slices a while."""
        while True:
            step = self.table.maintain()
            if step.plan is not None or not step.more:
                return step.plan

    def end(self, plan: Plan | None, *, without: Collection[str] = ()) -> None:
        """Compacts its slices but for those of partitions ``without``."""
        assert plan is not None
        dropped = {each: WHY for each in plan.operations if each.partition in without}
        finished = [execute(self.table, each, plan.instant) for each in plan.operations if each not in dropped]
        self.table.finish_plan(plan.instant, finished, dropped)

    def wait(self, milliseconds: int) -> None:
        self.clock.now += milliseconds


def partitions(plan: Plan | None) -> list[str]:
    return sorted(each.partition for each in plan.operations) if plan is not None else []


def assert_all_read_the_same(table: Table) -> None:
    ours = table.scan().to_table().to_pylist()
    theirs = [{name: row[name] for name in ours[0]} for row in by_hudi_rs(table.url)]
    assert as_text(ours) == as_text(theirs)
    assert len(ours) == 2


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """Both slices are due."""
    made = Owner(tmp_path)
    made.write(P, Q, times=4)
    return made


def test_a_slice_that_a_plan_went_on_without_counts_for_no_limit_but_its_own(owner: Owner) -> None:
    owner.end(owner.maintain(), without=[P])
    owner.write(P, times=5)
    [stuck] = owner.table.stuck
    assert (stuck.partition, stuck.why, stuck.tries) == (P, WHY, 1)
    assert owner.table.largest_slice() == SliceLogSize()
    of_it = owner.table.log_size_of(stuck)
    assert of_it is not None
    assert of_it.log_files == 8
    owner.reopen()
    assert [each.partition for each in owner.table.stuck] == [P], "a takeover does not forget it"
    assert owner.maintain() is None
    assert owner.table.largest_slice() == SliceLogSize()
    assert owner.table.log_size_of(stuck) == of_it


def test_it_rests_twice_as_long_after_each_failure_while_others_are_planned(owner: Owner) -> None:
    owner.end(owner.plan(), without=[P])
    for tries in (1, 2, 3):
        rest = FIRST_REST_MS * 2 ** (tries - 1)
        owner.reopen()
        owner.write(P, Q, times=2)
        owner.wait(rest - 3000)
        healthy = owner.plan()
        assert partitions(healthy) == [Q]
        owner.end(healthy)
        assert owner.plan() is None
        owner.wait(1000)
        again = owner.plan()
        assert partitions(again) == [P]
        owner.end(again, without=[P])
        assert owner.table.stuck[0].tries == tries + 1


def test_it_gets_a_plan_of_its_own_so_that_others_need_not_wait_for_it(owner: Owner) -> None:
    owner.end(owner.plan(), without=[P])
    owner.write(P, Q, times=6)
    owner.wait(FIRST_REST_MS)
    assert [partitions(owner.plan()), partitions(owner.plan())] == [[Q], [P]]


def test_the_longest_rest_is_bounded_and_a_clock_that_was_ahead_makes_none_longer() -> None:
    stuck: StuckSlice | None = None
    for _ in range(40):
        stuck = failed_again(stuck, (P, "group"), WHY, now=1000)
    assert stuck is not None
    assert stuck.again == 1000 + LONGEST_REST_MS
    assert stuck.rests(1000)
    assert not stuck.rests(stuck.again)
    assert not stuck.rests(999), "that much ahead it was never set by this clock"


def test_once_compacted_it_is_as_any_other(owner: Owner) -> None:
    owner.end(owner.maintain(), without=[P])
    assert owner.maintain() is None
    owner.wait(FIRST_REST_MS)
    owner.end(owner.maintain())
    assert owner.table.stuck == []
    owner.write(P)
    assert owner.table.largest_slice() == SliceLogSize(1, owner.table.largest_slice().log_bytes)  # type: ignore[union-attr]
    assert_all_read_the_same(owner.table)


def test_a_slice_that_is_set_aside_is_planned_by_nobody_until_it_is_readmitted(owner: Owner) -> None:
    owner.end(owner.plan(), without=[P])
    [stuck] = owner.table.stuck
    owner.table.set_aside(stuck.name)
    owner.table.set_aside(stuck.name)
    owner.write(P, times=6)
    owner.wait(2 * LONGEST_REST_MS)
    owner.reopen()
    assert owner.maintain() is None
    assert owner.plan() is None
    assert owner.table.plan_compaction(forced=True) is None
    [aside] = owner.table.stuck
    assert (aside.aside, aside.why) == (True, WHY)
    owner.table.readmit(stuck.name)
    owner.table.readmit(stuck.name)
    owner.write(P)
    assert owner.table.largest_slice() == SliceLogSize(), "it stays out of the limits until it is compacted"
    owner.end(owner.plan())
    assert owner.table.stuck == []


def test_a_healthy_slice_may_be_set_aside_and_is_as_any_other_afterwards(owner: Owner) -> None:
    name = f"{Q}/{next(each.file_id for each in owner.table.file_groups() if each.partition == Q)}"
    owner.table.set_aside(name, "its disk is moved")
    assert partitions(owner.plan()) == [P]
    assert owner.table.stuck[0].why == "its disk is moved"
    owner.table.readmit(name)
    assert owner.table.stuck == []


def test_a_slice_that_is_not_there_is_refused_by_name(owner: Owner) -> None:
    for call in (owner.table.set_aside, owner.table.readmit):
        with pytest.raises(OptionError, match="no file slice 'p/nothing'"):
            call("p/nothing")


def test_a_restore_forgets_failures_and_keeps_what_an_operator_has_set_aside(owner: Owner) -> None:
    instant = owner.table.savepoint()
    owner.end(owner.plan(), without=[P, Q])
    assert len(owner.table.stuck) == 2
    owner.table.set_aside(owner.table.stuck[1].name)
    owner.table.restore(instant)
    assert [(each.partition, each.aside) for each in owner.table.stuck] == [(Q, True)]


@pytest.mark.slow
def test_what_is_stuck_is_in_the_fold_that_the_next_owner_opens_with(owner: Owner) -> None:
    owner.end(owner.plan(), without=[P])
    owner.write(Q, times=120)
    owner.table.tidy()
    assert owner.table._opened.log.state.folded > 0
    owner.reopen()
    assert [each.partition for each in owner.table.stuck] == [P]


def test_a_damaged_log_is_named_with_its_byte_by_a_compaction_without_a_cluster(owner: Owner) -> None:
    group = next(each for each in owner.table.file_groups() if each.partition == P)
    log = group.slices()[-1].path(group.slices()[-1].logs[-1].name)
    path = Path(owner.table.url.removeprefix("file://")) / log
    with changed(path, flip(path.read_bytes(), end_of_last_page(path.read_bytes()))):
        result = owner.table.compact()
        assert [each.partition for each in result.dropped] == [P]
        [stuck] = owner.table.stuck
        assert f"{log} at byte 0" in stuck.why
        with pytest.raises(CorruptFileError):
            owner.table.scan().to_table()
    owner.table.compact()
    assert owner.table.stuck == []
    assert_all_read_the_same(owner.table)


def test_a_pinned_log_that_is_gone_is_named_and_its_slice_rests_while_others_are_compacted(owner: Owner) -> None:
    """Also at the next attempts: the plan is not retried at once, and not for ever."""
    group = next(each for each in owner.table.file_groups() if each.partition == P)
    log = group.slices()[-1].path(group.slices()[-1].logs[0].name)
    path = Path(owner.table.url.removeprefix("file://")) / log
    content = path.read_bytes()
    path.unlink()
    result = owner.table.compact()
    assert ([each.partition for each in result.dropped], [each.operation.partition for each in result.finished]) == ([P], [Q])
    [stuck] = owner.table.stuck
    assert (f"{log} is pinned by a compaction, but not there" in stuck.why, stuck.tries) == (True, 1)
    assert (dict(owner.table.plans), owner.plan()) == ({}, None)
    with pytest.raises(MissingFileError, match=log):
        owner.table.scan().to_table()
    owner.wait(FIRST_REST_MS)
    assert [each.partition for each in owner.table.compact().dropped] == [P]
    assert ([each.tries for each in owner.table.stuck], owner.plan()) == ([2], None)
    path.write_bytes(content)
    owner.table.compact()
    assert owner.table.stuck == []
    assert_all_read_the_same(owner.table)


def test_a_slice_of_which_a_file_is_gone_for_good_is_compacted_without_it_once_its_loss_is_accepted(owner: Owner) -> None:
    group = next(each for each in owner.table.file_groups() if each.partition == P)
    log = group.slices()[-1].logs[0].name
    (Path(owner.table.url.removeprefix("file://")) / P / log).unlink()
    assert owner.table.compact().dropped
    [stuck] = owner.table.stuck
    owner.table.readmit(stuck.name)
    assert owner.table.compact().dropped, "it was not accepted"
    owner.table.readmit(stuck.name, accept_loss=True)
    [accepted] = owner.table.stuck
    assert (accepted.without, accepted.is_accepted) == ((log,), True)
    assert not owner.table.compact().dropped
    assert owner.table.stuck == []
    assert_all_read_the_same(owner.table)
