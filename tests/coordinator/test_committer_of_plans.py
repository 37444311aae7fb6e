"""The committer's part in compaction, on a real table: plans are told of when they open and when they close, and how."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_coordinator.core.events import InstantIssued
from headgate_coordinator.core.instructions import DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.core.operations import CompactionEvent, FinishPlan, FinishRefused, PlanClosed, PlanOpened
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.work import Maintain, RunService, Work
from headgate_tables.errors import CorruptFileError, StoreUnavailableError
from headgate_tables.face.operation import OperationResult
from headgate_tables.hudi import OwnerProcess, open_table
from headgate_tables.hudi.services.planning.left_figures import LEFT_EVERY
from headgate_tables.storage.store import Outcome
from support.alarms import text_of
from support.handles import open_on
from support.minor import SETTINGS as MINOR
from support.slices import execute
from support.systems import FaultyStore
from support.tables import create, notes, rows

STEPS = 1000
COMMITS = 30
NOW_MS = 1_800_000_000_000


class Owner:
    """A committer of a cluster's handle, and what it says of plans."""

    def __init__(self, folder: Path) -> None:
        self.store = FaultyStore(folder / "table")
        owner = OwnerProcess("cluster", "host", 1, "one:1")
        self.table = open_on(self.store, take_over=True, owner=owner)
        self.table.own()
        self.said: list[object] = []
        self.committer = Committer(self.table, lambda: NOW_MS, self.said.append)

    def do(self, work: Work) -> list[CompactionEvent]:
        self.said.clear()
        self.committer.execute(work)
        return self.of_plans()

    def of_plans(self) -> list[CompactionEvent]:
        return [each for each in self.said if isinstance(each, PlanOpened | PlanClosed | FinishRefused)]

    def maintain_until(self, wanted: Callable[[], bool]) -> list[CompactionEvent]:
        """The first steps wait until the table is listed."""
        said: list[CompactionEvent] = []
        for _ in range(STEPS):
            said += self.do(Maintain())
            if wanted():
                return said
            time.sleep(0.01)
        raise AssertionError(f"{STEPS} steps of maintenance did not come so far")

    def merge(self, opened: PlanOpened) -> list[OperationResult]:
        return [execute(self.table, each, opened.instant) for each in opened.operations]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """Of a table with a slice that is due: it has more log files than any rule lets be."""
    create(tmp_path, buckets=1)
    owner = Owner(tmp_path)
    for number in range(COMMITS):
        owner.table.upsert(rows(("a", number, f"n{number}")))
    return owner


def opened(owner: Owner) -> PlanOpened:
    [plan] = owner.maintain_until(lambda: bool(owner.table.plans))
    assert isinstance(plan, PlanOpened)
    assert plan.attempts == owner.table.settings.compaction_attempts
    return plan


def test_a_plan_is_told_of_once_and_again_by_a_successor(owner: Owner, tmp_path: Path) -> None:
    plan = opened(owner)
    assert owner.do(Maintain()) == []
    successor = Owner(tmp_path)
    successor.committer.load_past()
    assert successor.of_plans() == [plan]


def test_a_finished_plan_is_committed_and_closed(owner: Owner, tmp_path: Path) -> None:
    plan = opened(owner)
    assert owner.do(FinishPlan(plan.instant, owner.merge(plan), {})) == [PlanClosed(plan.instant, done=True)]
    table = open_table(f"file://{tmp_path}/table")
    assert notes(table) == {"a": f"n{COMMITS - 1}"}
    assert [commit.action for commit in table.commits()][-1] == "commit"


def test_what_the_store_refuses_is_refused_and_can_be_tried_again(owner: Owner, tmp_path: Path) -> None:
    def refuse(path: str) -> Outcome | None:
        if "/slot/" in path:
            raise StoreUnavailableError("busy", fix="later")
        return None

    plan = opened(owner)
    finish = FinishPlan(plan.instant, owner.merge(plan), {})
    owner.store.before_create = refuse
    [refused] = owner.do(finish)
    assert isinstance(refused, FinishRefused)
    assert "busy" in refused.why
    owner.store.before_create = lambda path: None
    assert owner.do(finish) == [PlanClosed(plan.instant, done=True)]
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": f"n{COMMITS - 1}"}


def test_maintenance_that_the_store_refuses_is_due_again(owner: Owner) -> None:
    def refuse(path: str) -> Outcome | None:
        raise StoreUnavailableError("busy", fix="later")

    owner.store.before_create = refuse
    assert owner.maintain_until(lambda: owner.table.largest_slice() is not None) == []
    assert owner.do(Maintain()) == []
    assert not owner.committer.more_to_maintain
    owner.store.before_create = lambda path: None
    opened(owner)


def test_while_the_store_takes_no_slot_one_is_tried_at_a_time_and_nothing_is_maintained(owner: Owner) -> None:
    """Each try costs a store that is short of breath a request, and a plan that is refused has looked at the whole table."""
    tried: list[str] = []

    def refuse(path: str) -> Outcome | None:
        if "/slot/" in path:
            tried.append(path)
            raise StoreUnavailableError("busy", fix="later")
        return None

    owner.store.before_create = refuse
    assert owner.maintain_until(lambda: owner.table.largest_slice() is not None) == []
    owner.do(WinOffsets(1, {"c": (1, 0, "me")}))
    for _ in range(2):
        tried.clear()
        assert owner.do(Maintain()) == []
        assert len(tried) == 1
        assert not owner.committer.more_to_maintain
    owner.store.before_create = lambda path: None
    assert [type(each) for each in owner.do(Maintain())] == [PlanOpened], "with the same look that finds the store back"
    assert text_of(owner.committer.outage.alarm) == ""


def test_a_damaged_history_keeps_from_archiving_and_says_so_and_rows_go_on(owner: Owner, tmp_path: Path) -> None:
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    owner.table.configure({**few, "hoodie.compact.inline.max.delta.commits": "1000", "headgate.clean.min.age": "0"})
    version = tmp_path / "table/.hoodie/timeline/history/_version_"
    version.write_text("7")
    owner.maintain_until(lambda: bool(owner.committer.maintenance_alarm))
    assert "history" in text_of(owner.committer.maintenance_alarm)
    owner.table.upsert(rows(("b", 1, "still taken")))
    version.unlink()
    owner.maintain_until(lambda: len(owner.table.commits()) < 10)
    assert not owner.committer.maintenance_alarm
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": f"n{COMMITS - 1}", "b": "still taken"}


def test_a_plan_that_somebody_cancels_is_closed_and_its_results_count_for_nothing(owner: Owner, tmp_path: Path) -> None:
    plan = opened(owner)
    results = owner.merge(plan)
    cancel = RunService(lambda table: table.cancel_plan(plan.instant), _fail)
    assert owner.do(cancel) == [PlanClosed(plan.instant, done=False)]
    assert owner.do(FinishPlan(plan.instant, results, {})) == []
    table = open_table(f"file://{tmp_path}/table")
    assert notes(table) == {"a": f"n{COMMITS - 1}"}
    assert "commit" not in [commit.action for commit in table.commits()]


def test_settings_that_were_changed_go_to_compactors_and_others_do_not(owner: Owner) -> None:
    owner.committer.load_past()
    assert owner.committer.settings == {}
    change = {"hoodie.parquet.bloom.filter.enabled": "true"}
    owner.do(RunService(lambda table: table.configure(change), _fail))
    assert owner.committer.settings == change


def _fail(error: BaseException) -> None:
    raise error


@pytest.fixture
def waiting(tmp_path: Path) -> Owner:
    """Of a table of which a minor compaction is due, and whose older checkpoint has its instant."""
    create(tmp_path, buckets=1)
    owner = Owner(tmp_path)
    owner.table.configure(MINOR)
    owner.table.upsert(rows(("a", 1, "base")))
    owner.table.compact()
    for number in range(2, 5):
        owner.table.upsert(rows(("a", number, f"n{number}")))
    owner.do(IssueInstant(1, 1))
    return owner


def issued(owner: Owner) -> list[str]:
    return [each.instant for each in owner.said if isinstance(each, InstantIssued)]


def wait_for_a_plan(owner: Owner) -> None:
    """Steps until one finds that a plan has to wait: before, the table is listed."""
    owner.maintain_until(lambda: owner.committer.plan_waits)
    assert not owner.table.plans


def test_de5_a_younger_checkpoint_gets_its_instant_behind_a_plan_that_waits_for_the_older_one(waiting: Owner) -> None:
    wait_for_a_plan(waiting)
    assert waiting.do(IssueInstant(1, 2)) == []
    assert not issued(waiting)
    [opened_now] = waiting.do(DropCheckpoint(1, 1))
    assert isinstance(opened_now, PlanOpened)
    assert [bool(each.merged_log) for each in opened_now.operations] == [True]
    [instant] = issued(waiting)
    assert instant > opened_now.instant
    assert not waiting.committer.plan_waits


def test_a_younger_checkpoint_that_is_aborted_before_it_has_an_instant_gets_none(waiting: Owner) -> None:
    wait_for_a_plan(waiting)
    waiting.do(IssueInstant(1, 2))
    assert waiting.do(DropCheckpoint(1, 2)) == []
    assert [type(each) for each in waiting.do(DropCheckpoint(1, 1))] == []
    assert not issued(waiting)
    assert [type(each) for each in waiting.do(Maintain())] == [PlanOpened]


def test_no_instant_waits_for_a_plan_that_damage_keeps_from_being_made(waiting: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_a_plan(waiting)

    def damaged() -> None:
        raise CorruptFileError("a file is damaged", fix="Restore it.")

    monkeypatch.setattr(waiting.table, "maintain", damaged)
    waiting.do(Maintain())
    waiting.do(IssueInstant(1, 2))
    assert issued(waiting)


def test_an_instant_is_issued_at_once_while_no_plan_waits(waiting: Owner) -> None:
    waiting.do(IssueInstant(1, 2))
    assert issued(waiting)


def test_the_successor_of_a_lost_owner_knows_what_slices_hold_at_most_without_a_listing(owner: Owner, tmp_path: Path) -> None:
    owner.maintain_until(lambda: owner.committer.figures.counted)
    for number in range(LEFT_EVERY + 4):
        owner.table.upsert(rows(("a", COMMITS + number, "x")))
        owner.committer.tidy()
    held = owner.table.largest_slice()
    assert held is not None
    figures = Owner(tmp_path).committer.figures
    assert figures.counted
    assert held.log_files <= figures.files <= held.log_files + LEFT_EVERY
