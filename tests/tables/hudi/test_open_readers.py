"""A handle that stays open while another process compacts, cleans, archives and restores: right rows, and no needless listing."""

from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import RangeGoneError
from headgate_tables.hudi.log.names import log_name
from headgate_tables.hudi.lost_files import list_unlisted
from headgate_tables.hudi.snapshot import new_instants
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import FileSystemView
from support.counting import counted
from support.readers import query_by_hudi_rs
from support.tables import SHORT, create, rows


class Reader:
    """A handle of its own, and what it asks of the store."""

    def __init__(self, url: str) -> None:
        self.table, self._store = counted(url)

    def notes(self, **query: str) -> list[str]:
        return sorted(str(note) for note in self.table.scan(**query).to_table()["note"].to_pylist())  # type: ignore[arg-type]

    def data_folders_listed(self) -> list[str]:
        """Since the last call."""
        found = [folder for folder in self._store.listed if not folder.startswith(".hoodie")]
        self._store.listed.clear()
        return found


@pytest.fixture
def writer(tmp_path: Path) -> hudi.Table:
    table = create(tmp_path, buckets=1)
    table.configure(SHORT)
    for n in range(4):
        table.upsert(rows(("a", n, f"a{n}"), (f"k{n}", n, f"k{n}")))
    return table


@pytest.fixture
def reader(writer: hudi.Table) -> Reader:
    opened = Reader(writer.url)
    assert opened.notes() == ["a3", "k0", "k1", "k2", "k3"]
    assert opened.data_folders_listed()
    return opened


def agree(reader: Reader, writer: hudi.Table, live: int) -> None:
    """With a new handle and with hudi-rs; nothing but the timeline was listed."""
    found = reader.notes()
    assert found == sorted(row["note"] for row in query_by_hudi_rs(writer.url))
    assert found == Reader(writer.url).notes()
    assert len(found) == live
    assert reader.data_folders_listed() == []


def test_a_compaction_is_taken_in_without_listing(writer: hudi.Table, reader: Reader) -> None:
    writer.compact()
    agree(reader, writer, 5)
    assert [len(part.logs) for part in reader.table.scan().slices()] == [0]
    writer.upsert(rows(("b", 9, "b")))
    agree(reader, writer, 6)
    assert [len(part.logs) for part in reader.table.scan().slices()] == [1]


def test_a_savepoint_a_clean_and_an_archiving_are_followed_without_listing(writer: hudi.Table, reader: Reader) -> None:
    saved = writer.savepoint()
    agree(reader, writer, 5)
    writer.remove_savepoint(saved)
    writer.compact()
    writer.upsert(rows(("b", 9, "b")))
    agree(reader, writer, 6)
    writer.compact()
    assert writer.clean().files
    assert writer.archive().instants
    agree(reader, writer, 6)
    held = {log.name for group in reader.table.file_groups() for part in group.slices() for log in part.logs}
    there = {file.name for file in Path(writer.url.removeprefix("file://")).rglob(".0*.log*")}
    assert held == there, "the view kept files that were cleaned"


def test_what_is_committed_while_a_thread_lists_is_in_the_view_that_comes_of_it_unread(writer: hudi.Table) -> None:
    """The owner's commits wait while a listing is taken in. Slots may be folded before, so that none names the file any more."""
    writer.close()
    owner, store = counted(writer.url)
    context = owner._context()
    context.snapshots.begin_listing()
    listed, _ = list_unlisted(store, context.layout.history_folder, ())
    done = owner.upsert(rows(("b", 9, "b")))
    context.log.fold()
    with store.forgetting():
        view = context.snapshots.end_listing(listed)
    assert done.instant in {log.instant for part in view.latest_slices() for log in part.logs}
    assert store.opened == []


def test_what_was_archived_unseen_makes_the_reader_list_again(writer: hudi.Table, reader: Reader) -> None:
    """Every commit that it knew is gone, and those between then and now are nowhere on the timeline."""
    known = {info.instant for info in writer.commits()}
    for n in range(6):
        writer.upsert(rows((f"new{n}", 1, f"new{n}")))
    writer.compact()
    writer.upsert(rows(("b", 9, "b")))
    writer.compact()
    writer.clean()
    writer.archive()
    assert known.isdisjoint(info.instant for info in writer.commits())
    assert len(reader.notes()) == 5 + 6 + 1
    assert reader.data_folders_listed()


def test_a_restore_makes_the_reader_list_again(writer: hudi.Table, reader: Reader) -> None:
    saved = writer.savepoint()
    writer.upsert(rows(("b", 9, "b")))
    assert "b" in reader.notes()
    writer.restore(saved)
    assert reader.notes() == ["a3", "k0", "k1", "k2", "k3"]
    assert reader.data_folders_listed()


def test_a_past_that_is_cleaned_meanwhile_is_an_error_in_an_open_handle_too(writer: hudi.Table, reader: Reader) -> None:
    first, second, *_ = writer.commits()
    assert reader.table.scan(as_of=first.instant).to_table().num_rows == 2
    writer.compact()
    writer.upsert(rows(("b", 9, "b")))
    writer.compact()
    earliest = writer.clean().earliest
    for query in ({"as_of": first.instant}, {"since": first.completion, "as_of": second.completion}):
        with pytest.raises(RangeGoneError, match=f"the oldest point that can be read is {earliest}"):
            reader.notes(**query)
    assert len(reader.notes(as_of=earliest)) == 6
    writer.archive()
    with pytest.raises(RangeGoneError, match="were archived"):
        reader.table.scan(since=first.completion)


def test_a_saved_point_is_read_after_the_cleaning_that_took_the_others(writer: hudi.Table, reader: Reader) -> None:
    before = reader.notes()
    saved = writer.savepoint()
    point = next(info for info in writer.commits() if info.instant == saved)
    for n in range(3):
        writer.upsert(rows((f"b{n}", 9, f"b{n}")))
        writer.compact()
    writer.clean()
    older, *_ = writer.commits()
    for time in (point.instant, point.completion):
        assert reader.notes(as_of=time) == before
    assert older.instant != saved
    with pytest.raises(RangeGoneError, match=f"or a saved instant: {saved}"):
        reader.table.scan(as_of=older.instant)


# --- which news say everything ---


def timeline(*names: str) -> Timeline:
    """``12c`` is a delta commit requested at 1 that completed at 2, ``3`` a pending one; ``45C`` is a compaction."""
    made = Timeline()
    actions = {"c": "deltacommit", "C": "commit", "x": "rollback", "r": "replacecommit", "l": "clean"}
    for name in names:
        done = len(name) == 3
        state = State.COMPLETED if done else State.REQUESTED
        made.add([Instant(name[0], actions[name[2]] if done else "deltacommit", state, name[1] if done else "")])
    return made


def test_completion_times_of_archived_logs_are_found_in_whatever_order_files_are_listed() -> None:
    archive = {f"2026010100000000{number}": f"2026010100000001{number}" for number in range(5)}
    timeline = Timeline()
    timeline.add([Instant("20260102000000000", "deltacommit", State.COMPLETED, "20260102000000001")])
    view = FileSystemView(timeline, {}, lambda oldest: {time: done for time, done in archive.items() if time >= oldest})
    names = [log_name("00000000-0000-0000-0000-000000000000-0", instant, 1, "0-0-0") for instant in archive]
    view.add_files("p", [names[3], names[0], names[4]])
    view.add_files("p", [names[2], names[1]])
    [part] = view.latest_slices()
    assert {log.instant: log.completion for log in part.logs} == archive


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        (["12c"], ["12c", "34c", "56C", "78l"], "357"),
        (["12c", "34c"], ["34c", "56c"], "5"),
        (["12c", "3"], ["12c", "35c"], "3"),
        (["12c", "3"], ["12c"], ""),
        (["12c"], ["12c", "34r"], None),
        (["12c", "34c"], ["12c", "56x"], None),
        (["12c", "34c"], ["12c"], None),
        (["12c"], ["34c"], None),
        (["12c"], [], None),
        (["34c"], ["12c", "34c"], None),
        (["1", "34c"], ["34c", "56c"], None),
        ([], ["12c"], "1"),
    ],
)
def test_news_that_do_not_tell_everything_are_none(before: list[str], after: list[str], news: str | None) -> None:
    found = new_instants(timeline(*before), timeline(*after))
    assert (None if found is None else "".join(instant.time for instant in found)) == news


def test_files_of_change_data_beside_the_logs_are_neither_read_nor_compacted(writer: hudi.Table) -> None:
    """Spark writes them under the log's own name; they hold what changed, not rows."""
    [folder] = Path(writer.url.removeprefix("file://")).glob("p")
    for log in list(folder.glob(".*.log.*")):
        log.with_name(f"{log.name}.cdc").write_bytes(b"#HUDI# and no block of rows")
    owner = hudi.open_table(writer.url)
    found = owner.scan().to_table()["note"].to_pylist()
    assert sorted(found) == sorted(row["note"] for row in query_by_hudi_rs(writer.url)) == ["a3", "k0", "k1", "k2", "k3"]
    plan = owner.plan_compaction(forced=True)
    assert plan is not None
    assert [len(each.logs) for each in plan.operations] == [3]
    assert owner.compact().completion
    assert sorted(owner.scan().to_table()["note"].to_pylist()) == sorted(found)
