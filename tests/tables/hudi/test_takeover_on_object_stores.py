"""A takeover on an object store lists what earlier owners have published, and looks at single files only where one is amiss."""

import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_on, read_state
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.system import System
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.tables import by_hudi_rs, create, notes, rows

_T = TypeVar("_T")
COMMITS = 30
SLOTS = ".hoodie/.headgate/slot"
FOLDS = ".hoodie/.headgate/fold"


class Recording(InPlaceStore):
    """Keeps the names and paths of all calls."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, System.real().ids)
        self.seen: list[str] = []

    def _call(self, name: str, work: Callable[[], _T]) -> _T:
        self.seen.append(name)
        return work()

    def requests(self) -> Counter[str]:
        """Requests about the timeline, by kind."""
        return Counter(call.split()[0] for call in self.seen if call.split()[1].startswith(TIMELINE_FOLDER))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create(tmp_path, buckets=1)
    with open_on(Recording(tmp_path / "table")) as first:
        for number in range(COMMITS):
            first.upsert(rows((f"k{number}", number, "x")))
    return tmp_path / "table"


def took_over(folder: Path) -> tuple[hudi.Table, Counter[str]]:
    store = Recording(folder)
    table = open_on(store)
    store.seen.clear()
    table.own()
    return table, store.requests()


def completed(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / TIMELINE_FOLDER).iterdir() if path.name.endswith(".deltacommit"))


def test_files_that_are_published_cost_a_listing_and_not_a_request_each(table: Path) -> None:
    handle, requests = took_over(table)
    assert requests["list_folder"] <= 3
    assert requests.total() <= 12
    handle.upsert(rows(("after", 1, "y")))
    expected = {f"k{n}": "x" for n in range(COMMITS)} | {"after": "y"}
    assert notes(handle) == expected
    assert {row["id"]: row["note"] for row in by_hudi_rs(str(table))} == expected


class Slow(Recording):
    """Answers each request for a slot when so many others are under way, and at the latest after a while."""

    def __init__(self, root: Path, together: int) -> None:
        super().__init__(root)
        self._met = threading.Barrier(together)
        self.alone = 0

    def _call(self, name: str, work: Callable[[], _T]) -> _T:
        if name.startswith(f"get {SLOTS}"):
            try:
                self._met.wait(timeout=5)
            except threading.BrokenBarrierError:
                self.alone += 1
        return super()._call(name, work)


def test_slots_since_the_last_fold_are_read_many_at_once(table: Path) -> None:
    """One after the other they would cost a takeover 5 s, with 100 slots and 25 ms for an answer: they are read twice."""
    slots = len(list((table / SLOTS).iterdir()))
    store = Slow(table, 8)
    state, read = read_state(store, LOG_LAYOUT)
    assert (slots % 8, store.alone) == (0, 0)
    assert [slot.n for slot in read] == list(range(slots))
    assert state.n == slots - 1


def opened(folder: Path) -> tuple[hudi.Table, Recording]:
    """A handle that has read the log, and a store that notes what comes."""
    store = Recording(folder)
    table = open_on(store)
    store.seen.clear()
    return table, store


def reads(store: Recording) -> list[str]:
    """Of slots and folds."""
    return [call for call in store.seen if call.startswith((f"get {SLOTS}", f"get {FOLDS}"))]


def test_who_owns_what_it_has_opened_reads_the_newest_slot_again_and_no_other(table: Path) -> None:
    handle, store = opened(table)
    handle.own()
    assert [call.rpartition("/")[2] for call in reads(store)] == [f"{COMMITS + 1:020}"]
    handle.upsert(rows(("after", 1, "y")))
    assert len(notes(handle)) == COMMITS + 1


def test_t1_slots_that_came_since_the_table_was_opened_are_read(table: Path) -> None:
    handle, _ = opened(table)
    with open_on(Recording(table)) as other:
        other.upsert(rows(("other", 1, "x")))
        epoch = other.own()
    assert handle.own() == epoch + 1
    handle.upsert(rows(("k1", 99, "y")))
    assert notes(handle) == {f"k{n}": "x" for n in range(COMMITS)} | {"other": "x", "k1": "y"}


def test_slots_behind_a_fold_that_came_since_are_left_out(table: Path) -> None:
    """What a takeover publishes again, and counts for the next fold."""
    with open_on(Recording(table)) as other:
        other.own()
        state, unfolded = read_state(store := Recording(table), LOG_LAYOUT)
        log, _ = other._opened.writable()
        log.fold()
        other.upsert(rows(("after", 1, "y")))
    later, left = read_on(store, LOG_LAYOUT, state, unfolded)
    assert len(unfolded) > COMMITS
    assert (later.folded, [slot.n for slot in left]) == (state.n, list(range(state.n + 1, later.n + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 80])
def test_t1_a_fold_that_came_since_the_table_was_opened_is_no_gap(table: Path, commits: int) -> None:
    """Also one behind which slots were deleted that this handle has read, and the ones after them."""
    handle, _ = opened(table)
    with open_on(Recording(table)) as other:
        other.configure({"headgate.log.retire.after": "0"})
        for number in range(commits):
            other.upsert(rows(("other", number, "x")))
        log, _ = other._opened.writable()
        log.fold()
        log.truncate(0)
        epoch = other.own()
    assert handle.own() == epoch + 1
    handle.upsert(rows(("k1", 99, "y")))
    expected = {f"k{n}": "x" for n in range(COMMITS)} | {"other": "x", "k1": "y"}
    assert notes(handle) == expected
    assert {row["id"]: row["note"] for row in by_hudi_rs(str(table))} == expected


def test_t1_a_log_that_was_restored_from_a_copy_is_read_anew(tmp_path: Path, table: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(table, copy)
    with open_on(Recording(table)) as other:
        other.upsert(rows(("lost", 1, "x")))
    handle, _ = opened(table)
    shutil.rmtree(table)
    shutil.copytree(copy, table)
    handle.own()
    handle.upsert(rows(("after", 1, "y")))
    assert notes(handle) == {f"k{n}": "x" for n in range(COMMITS)} | {"after": "y"}


def test_a_commit_does_not_look_again_at_the_files_that_announced_it(table: Path) -> None:
    store = Recording(table)
    with open_on(store) as handle:
        handle.upsert(rows(("first", 1, "x")))
        store.seen.clear()
        handle.upsert(rows(("second", 1, "x")))
    asked = Counter(call.rpartition(".")[2] for call in store.seen if f" {TIMELINE_FOLDER}/" in call)
    assert asked == {"requested": 1, "inflight": 1, "deltacommit": 1}


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_p3_a_file_that_announced_a_commit_and_is_gone_is_there_again_afterwards(table: Path, state: str) -> None:
    with open_on(Recording(table)) as handle:
        with handle.transaction() as transaction:
            transaction.upsert(rows(("new", 1, "x")))
            announced = table / TIMELINE_FOLDER / f"{transaction.instant}.deltacommit.{state}"
            announced.unlink()
        assert announced.exists()


@pytest.mark.parametrize("which", [0, COMMITS // 2, COMMITS - 1])
def test_p1_a_file_that_an_owner_did_not_come_to_publish_is_created(table: Path, which: int) -> None:
    lost = completed(table)[which]
    content = lost.read_bytes()
    lost.unlink()
    handle, _ = took_over(table)
    assert lost.read_bytes() == content
    assert notes(handle) == {f"k{n}": "x" for n in range(COMMITS)}


def test_p2_a_file_of_another_size_under_a_name_of_ours_is_reported_and_stays(table: Path) -> None:
    strange = completed(table)[3]
    strange.write_bytes(b"of somebody else")
    with pytest.raises(CorruptFileError, match=strange.name):
        took_over(table)
    assert strange.read_bytes() == b"of somebody else"


def test_p2_on_a_local_disk_a_torn_file_of_the_right_size_is_put_right(tmp_path: Path) -> None:
    create(tmp_path, buckets=1)
    folder = tmp_path / "table"
    with open_on(FailingStore(folder, System.real().ids)) as first:
        for number in range(COMMITS):
            first.upsert(rows((f"k{number}", number, "x")))
    torn = completed(folder)[7]
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2] + b"\0" * (len(content) - len(content) // 2))
    with open_on(FailingStore(folder, System.real().ids)) as second:
        second.own()
    assert torn.read_bytes() == content
