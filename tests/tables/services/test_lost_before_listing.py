"""A committed file that is gone before the table's owner lists the folders (rule W6): no compaction goes on without it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, MissingFileError, OptionError, StoreUnavailableError
from headgate_tables.face.operation import Plan
from headgate_tables.hudi.lost_files import find_unlisted, list_unlisted
from headgate_tables.hudi.services.stuck import FIRST_REST_MS
from headgate_tables.system import SystemIds
from support import minor, overwriting
from support.counting import counted
from support.handles import open_on
from support.held_store import HeldStore
from support.oracle import Oracle, Row
from support.readers import read_by_us
from support.same_rows import assert_same_rows
from support.systems import SetClock, system

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
SETTINGS = {"headgate.compaction.first.delta.commits": "2", "hoodie.compact.inline.max.delta.commits": "2"}


def rows(ts: int, parts: str = "ab") -> list[Row]:
    """Ten of their own for each ``ts``, so that no later row makes up for one that is lost."""
    return [{"id": f"k{ts}-{at}", "part": part, "ts": ts} for part in parts for at in range(10)]


def arrow(given: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(given, schema=SCHEMA)


class Scene:
    """A table of partitions a and b with one slice each: a base file of ``ts`` 1, 2 and logs of 3 to 6. No slot is left that
    names any of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SetClock()
        self.written: list[list[Row]] = []
        self.table = hudi.create_table(
            str(folder), SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", buckets=1, system=system(self.clock)
        )
        self.write(1, 2)
        self.compact()
        self.write(3, 4, 5, 6)
        self.fold()

    def write(self, *times: int, parts: str = "ab") -> None:
        for ts in times:
            self.clock.now += 1000
            self.table.upsert(arrow(rows(ts, parts)))
            self.written.append(rows(ts, parts))

    def compact(self) -> None:
        """And uses the instants up that were reserved before: archiving waits for logs of these."""
        self.table.compact()
        for _ in range(2):
            with self.table.transaction() as transaction:
                transaction.announce()
                transaction.rollback()

    def fold(self) -> None:
        log = self.table._opened.log
        assert log is not None
        log.fold()

    def restart(self, *, crashed: bool = False) -> None:
        """Another process owns the table. ``crashed``: the one before has ended nothing."""
        if not crashed:
            self.table.close()
        self.table = hudi.open_table(str(self.folder), system=system(self.clock), take_over=crashed)

    def archive(self) -> set[str]:
        """Takes off the timeline what may go: these instants. Older slices go, too."""
        retained = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
        self.table.configure({**retained, "headgate.clean.min.age": "0", "headgate.log.retire.after": "0"})
        self.table.tidy()
        archived = self.table.archive().instants
        assert self.table.clean().files
        self.fold()
        return set(archived)

    def reads_history(self) -> list[str]:
        """What the next owner reads of the history to find out what is gone."""
        table, store = counted(str(self.folder))
        view = table._unowned().view()
        with store.forgetting():
            find_unlisted(store, "history", view)
        return [path for path in store.opened if "/history/" in path]

    def file(self, kind: str, part: str = "a") -> Path:
        if kind == "log":
            return sorted(self.folder.glob(f"{part}/.*.log.*"), key=lambda path: path.name.partition("_")[2])[-3]
        return max(self.folder.glob(f"{part}/*.parquet"), key=lambda path: path.name.rpartition("_")[2])

    def lose(self, kind: str = "log") -> tuple[Path, bytes]:
        path = self.file(kind)
        content = path.read_bytes()
        path.unlink()
        return path, content

    def maintained(self) -> Plan | None:
        """The plan that the owner of a cluster comes to, which lists on another thread."""
        while True:
            step = self.table.maintain()
            if step.plan is not None or not step.more:
                return step.plan

    def assert_compacts_only_b(self, lost: Path) -> None:
        result = self.table.compact()
        assert [each.operation.partition for each in result.finished] == ["b"]
        [why] = result.dropped.values()
        assert f"{lost.relative_to(self.folder)} is pinned by a compaction, but not there. Restore it from a copy" in why
        assert [each.partition for each in self.table.stuck] == ["a"]

    def assert_holds(self, *written: list[Row]) -> None:
        oracle = Oracle(["id"], ["part"], "ts")
        for each in written or self.written:
            oracle.upsert(each)
        assert_same_rows(read_by_us(self.folder), arrow(oracle.rows()), "our reader")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "t")


def partitions(plan: Plan | None) -> Sequence[str]:
    return sorted(each.partition for each in plan.operations) if plan is not None else []


@pytest.mark.parametrize("kind", ["log", "base"])
@pytest.mark.parametrize("crashed", [False, True])
def test_w6_a_slice_that_lost_a_file_before_it_was_listed_is_not_compacted_without_it(
    scene: Scene, kind: str, crashed: bool
) -> None:
    lost, content = scene.lose(kind)
    scene.restart(crashed=crashed)
    scene.assert_compacts_only_b(lost)
    lost.write_bytes(content)
    scene.assert_holds()
    scene.table.compact()
    assert scene.table.stuck == []
    scene.assert_holds()


@pytest.mark.parametrize("kind", ["log", "base"])
@pytest.mark.parametrize("listed", ["by the caller", "by a thread"])
def test_w6_a_file_of_an_archived_commit_is_missed_too(scene: Scene, kind: str, listed: str) -> None:
    lost = scene.file(kind)
    assert any(instant in lost.name for instant in scene.archive())
    lost.unlink()
    scene.restart()
    scene.table.configure(SETTINGS)
    plan = scene.maintained() if listed == "by a thread" else scene.table.plan_compaction(forced=True)
    assert plan is not None
    assert lost.name in {name for each in plan.operations for name in each.names}


def test_no_history_is_read_for_that_unless_a_file_of_it_is_gone(scene: Scene) -> None:
    """Also after compactions of what is archived, and when nobody has left a number."""
    assert len(scene.archive()) >= 4
    assert scene.reads_history() == []
    scene.compact()
    assert scene.reads_history() == [], "what was archived is under new base files"
    scene.write(7, 8, 9)
    assert len(scene.archive()) >= 3
    assert scene.reads_history() == []
    scene.file("base").unlink()
    assert scene.reads_history() != []
    (scene.folder / ".hoodie/.headgate/archived").write_bytes(b"{")
    assert scene.reads_history() == []


def test_w6_the_owner_of_a_cluster_finds_it_in_its_listing_and_plans_the_slice_with_it(scene: Scene) -> None:
    lost, _ = scene.lose()
    scene.restart()
    scene.table.configure(SETTINGS)
    plan = scene.maintained()
    assert plan is not None
    assert partitions(plan) == ["a", "b"]
    assert lost.name in {log.name for each in plan.operations for log in each.logs}


def test_w6_a_slice_whose_file_stays_lost_is_tried_again_by_one_owner_after_the_other_and_never_compacted(scene: Scene) -> None:
    lost, content = scene.lose()
    for tries in (1, 2, 3):
        scene.restart()
        assert scene.table.compact().dropped
        scene.write(6 + tries)
        scene.fold()
        assert [each.tries for each in scene.table.stuck] == [tries]
        scene.clock.now += FIRST_REST_MS << tries
    scene.restart()
    [stuck] = scene.table.stuck
    scene.table.readmit(stuck.name)
    scene.assert_compacts_only_b(lost)
    lost.write_bytes(content)
    scene.restart()
    scene.table.readmit(stuck.name)
    scene.table.compact()
    assert scene.table.stuck == []
    scene.assert_holds()


def test_w6_a_handle_that_read_the_table_before_it_owns_it_misses_the_file_too(scene: Scene) -> None:
    lost, _ = scene.lose()
    scene.restart()
    assert scene.table.scan().to_table().num_rows == 2 * 60 - 10
    scene.assert_compacts_only_b(lost)


def test_w6_a_file_that_was_lost_before_its_own_owner_listed_again_is_missed(scene: Scene) -> None:
    """An overwrite makes an owner list again."""
    scene.table.compact()
    scene.write(7, 8, 9)
    scene.fold()
    lost, _ = scene.lose()
    overwriting.overwrite(scene.table, arrow(rows(10, "b")), "insert_overwrite")
    scene.fold()
    scene.write(11, parts="b")
    scene.assert_compacts_only_b(lost)


def test_w6_rows_that_come_after_a_whole_partition_was_lost_are_not_compacted_without_it(scene: Scene) -> None:
    gone = {path: path.read_bytes() for path in (scene.folder / "a").iterdir()}
    for path in gone:
        path.unlink()
    scene.write(7)  # a log: this handle knows the file group
    scene.fold()
    scene.restart()
    result = scene.table.compact()
    assert [each.operation.partition for each in result.finished] == ["b"]
    for path, content in gone.items():
        path.write_bytes(content)
    scene.table.compact()
    scene.assert_holds()


@pytest.mark.parametrize("listed", ["by the caller", "by a thread"])
def test_w6_a_late_output_of_a_plan_that_was_completed_without_it_hides_no_lost_file(scene: Scene, listed: str) -> None:
    lost, _ = scene.lose()
    scene.restart()
    [late] = scene.table.compact().dropped
    scene.fold()
    scene.restart()
    (scene.folder / late.path).write_bytes(scene.file("base").read_bytes())
    scene.clock.now += FIRST_REST_MS
    if listed == "by a thread":
        scene.table.configure(SETTINGS)
        plan = scene.maintained()
    else:
        plan = scene.table.plan_compaction(forced=True)
    assert plan is not None
    assert lost.name in {log.name for each in plan.operations for log in each.logs}


def test_w6_a_listing_from_before_a_restore_does_not_hide_a_lost_file_of_the_slice_that_it_brings_back(scene: Scene) -> None:
    saved = scene.table.savepoint()
    scene.write(7)
    scene.table.compact()
    scene.fold()
    lost, _ = scene.lose()
    scene.table.close()
    store = HeldStore(str(scene.folder), SystemIds())
    scene.table = open_on(store, system(scene.clock))
    scene.table.configure(SETTINGS)
    scene.table.maintain()
    listing = scene.table._maintainer._listing
    assert listing is not None
    store.listing_may_go_on.set()
    assert not listing.result()[1], "it lies under a base file"
    scene.table.restore(saved)
    plan = scene.maintained()
    assert plan is not None
    assert lost.name in {log.name for each in plan.operations for log in each.logs}


def test_w6_a_late_output_of_a_plan_that_is_completed_while_a_thread_lists_hides_no_lost_file(scene: Scene) -> None:
    lost, _ = scene.lose()
    planned = scene.table.plan_compaction(forced=True)
    assert planned is not None
    scene.fold()
    scene.table.close()
    store = HeldStore(str(scene.folder), SystemIds())
    scene.table = open_on(store, system(scene.clock))
    scene.table.configure(SETTINGS)
    scene.table.maintain()
    late, other = sorted(planned.operations, key=lambda each: each.partition)
    done = minor.run(scene.table, Plan(planned.instant, (other,)))
    scene.table.finish_plan(planned.instant, done, {late: "its log is gone"})
    (scene.folder / late.path).write_bytes(scene.file("base").read_bytes())
    store.listing_may_go_on.set()
    scene.clock.now += FIRST_REST_MS
    plan = scene.maintained()
    assert plan is not None
    assert lost.name in {log.name for each in plan.operations for log in each.logs}


@pytest.mark.parametrize("meanwhile", ["nothing", "a commit", "an overwrite"])
def test_the_view_of_a_listing_by_a_thread_is_the_one_that_any_handle_lists(scene: Scene, meanwhile: str) -> None:
    """Of a table with logs of archived commits, a group that was replaced, and a file that only its slot names."""
    assert any(instant in scene.file("log").name for instant in scene.archive())
    overwriting.overwrite(scene.table, arrow(rows(7, "b")), "insert_overwrite")
    scene.write(8)
    max(scene.folder.glob("a/.*.log.*"), key=lambda path: path.name.partition("_")[2]).unlink()
    snapshots = hudi.open_table(str(scene.folder))._opened.snapshots
    snapshots.begin_listing()
    listed, unlisted = list_unlisted(scene.table._store, "history", ())
    assert len(unlisted) == 1
    if meanwhile == "a commit":
        scene.write(9)
    elif meanwhile == "an overwrite":
        overwriting.overwrite(scene.table, arrow(rows(9, "a")), "insert_overwrite")
    found = snapshots.end_listing(listed)
    expected = hudi.open_table(str(scene.folder))._opened.snapshots.current().view
    assert (list(found.groups()), found.replaced()) == (list(expected.groups()), expected.replaced())
    assert found.timeline == expected.timeline


def test_a_commit_whose_metadata_cannot_be_read_keeps_plans_from_being_made(scene: Scene) -> None:
    """Nobody else says which files it put into slices."""
    scene.restart()
    timeline = scene.folder / ".hoodie/timeline"
    commit = max(timeline.glob("*_*.deltacommit"), key=lambda path: path.name)
    content = commit.read_bytes()
    commit.write_bytes(content[:-20])
    for act in (scene.table.compact, scene.maintained):
        with pytest.raises(CorruptFileError, match=commit.name):
            act()
    commit.write_bytes(content)
    assert len(scene.table.compact().finished) == 2


def test_a_store_that_does_not_answer_a_listing_is_asked_again_by_the_next_step(scene: Scene) -> None:
    scene.table.close()
    store = HeldStore(str(scene.folder), SystemIds())
    scene.table = open_on(store, system(scene.clock))
    scene.table.configure(SETTINGS)
    store.answers = False
    store.listing_may_go_on.set()
    with pytest.raises(StoreUnavailableError):
        scene.maintained()
    store.answers = True
    assert partitions(scene.maintained()) == ["a", "b"]


def test_what_was_cleaned_replaced_or_undone_is_not_missed_by_the_next_owner(scene: Scene) -> None:
    scene.table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
    scene.table.compact()
    saved = scene.table.savepoint()
    scene.write(7, 8)
    scene.table.compact()
    scene.table.restore(saved)
    scene.table.remove_savepoint(saved)
    del scene.written[-2:]
    scene.write(9, 10)
    scene.table.compact()
    assert scene.table.clean().files
    overwriting.overwrite(scene.table, arrow(rows(11, "b")), "insert_overwrite")
    scene.write(12, 13)
    scene.table.clean()
    scene.fold()
    scene.restart()
    assert not scene.table.compact().dropped
    kept = [[row for row in each if row["part"] == "a"] for each in scene.written[:-2]]
    scene.assert_holds(*kept, rows(11, "b"), *scene.written[-2:])


@pytest.mark.parametrize("kind", ["log", "base"])
def test_a_loss_that_is_accepted_is_compacted_away_and_no_more(scene: Scene, kind: str) -> None:
    lost, _ = scene.lose(kind)
    left = read_by_us(scene.folder)
    scene.restart()
    [stuck] = (scene.assert_compacts_only_b(lost), scene.table.stuck)[1]
    scene.table.readmit(stuck.name, accept_loss=True)
    [accepted] = scene.table.stuck
    assert (accepted.without, accepted.is_accepted) == ((lost.name,), True)
    scene.table.readmit(stuck.name)
    scene.fold()
    scene.restart()
    scene.table.configure(SETTINGS)
    plan = scene.maintained()
    assert plan is not None, "the thread that lists does not miss it"
    assert partitions(plan) == ["a"]
    [done] = scene.table.compact().finished
    assert (done.operation.partition, scene.table.stuck) == ("a", [])
    assert_same_rows(read_by_us(scene.folder), left, "our reader")
    scene.restart()
    scene.write(7)
    assert not scene.table.compact().dropped


def test_a_loss_that_is_accepted_with_nothing_left_to_compact_is_remembered_until_there_is(scene: Scene) -> None:
    scene.table.compact()
    scene.write(7, parts="a")
    scene.fold()
    group = next(each for each in scene.table.file_groups() if each.partition == "a")
    [log] = group.slices()[-1].logs
    (scene.folder / "a" / log.name).unlink()
    scene.restart()
    scene.table.readmit(f"a/{group.file_id}", accept_loss=True)
    scene.table.readmit(f"a/{group.file_id}")
    assert not scene.table.compact().planned
    assert [each.is_accepted for each in scene.table.stuck] == [True]
    scene.restart()
    scene.write(8, parts="a")
    assert len(scene.table.compact().finished) == 1
    assert scene.table.stuck == []
    del scene.written[-2]
    scene.assert_holds()


def test_no_loss_is_accepted_where_every_file_is_there(scene: Scene) -> None:
    damaged = scene.file("log")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    scene.restart()
    group = next(each for each in scene.table.file_groups() if each.partition == "a")
    with pytest.raises(OptionError, match=f"no file of a/{group.file_id} is gone") as refused:
        scene.table.readmit(f"a/{group.file_id}", accept_loss=True)
    assert "move it away first" in (refused.value.fix or "")
    assert scene.table.stuck == []


def test_a_rescale_names_the_file_also_when_a_plan_has_pinned_it(scene: Scene) -> None:
    lost, content = scene.lose()
    scene.restart()
    scene.table.compact()
    with pytest.raises(MissingFileError, match=f"a/{lost.name} is gone: it is committed") as refused:
        scene.table.rescale(2)
    assert "--accept-loss" in (refused.value.fix or "")
    lost.write_bytes(content)
    assert scene.table.rescale(2).rows == 120
    scene.assert_holds()
