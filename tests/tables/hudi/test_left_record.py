"""An owner that leaves in order says what it knows of the table: the next one lists what came since."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import ForeignWriterError, MissingFileError
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.left_record import FRESH_MS
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import FolderListing
from headgate_tables.system import SystemIds
from support.faults import InPlaceStore
from support.handles import open_on
from support.other_program import other_program
from support.systems import SetClock, system
from support.tables import by_hudi_rs, create, notes, rows

LEFT = ".hoodie/.headgate/left"


class Listing(InPlaceStore):
    """Notes how many files of the timeline each listing has found."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, SystemIds())
        self.found: list[int] = []

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        listing = super().list_folder(folder, after=after, sizes=sizes)
        if folder == TIMELINE_FOLDER:
            self.found.append(len(listing.files))
        return listing


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> Listing:
    create(tmp_path, system=system(clock))
    return Listing(tmp_path / "table")


@pytest.fixture
def first(store: Listing, clock: SetClock) -> Iterator[hudi.Table]:
    """The owner of a table with ten commits, which clients of a cluster would go on to fill."""
    with open_on(store, system(clock)) as table:
        for number in range(10):
            table.upsert(rows(("a", number, f"a{number}")))
        yield table


def successor(store: Listing, clock: SetClock) -> hudi.Table:
    """Owns the table; ``store.found`` is about that alone."""
    table = open_on(store, system(clock))
    store.found.clear()
    table.own()
    return table


def files_of(store: Listing, number: int) -> list[Path]:
    """Of a completed instant, by its number."""
    folder = Path(store.url.removeprefix("file://")) / TIMELINE_FOLDER
    instant = sorted({file.name[:17] for file in folder.glob("*_*.deltacommit")})[number]
    return sorted(folder.glob(f"{instant}*"))


def test_the_next_owner_lists_what_came_since(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    newest = first.commits()[-1]
    first.hand_over()
    second = successor(store, clock)
    assert store.found == [3], "the newest commit alone"
    assert second.left_commit is not None
    assert (second.left_commit.instant, second.left_commit.completion) == (newest.instant, newest.completion)
    second.upsert(rows(("a", 20, "second's")))
    second.hand_over()
    third = successor(store, clock)
    assert store.found == [3, 3], "before the fence, and to publish the newest slot again"
    assert notes(third) == {"a": "second's"}
    assert [row["note"] for row in by_hudi_rs(first.url)] == ["second's"]
    assert hudi.open_table(first.url).verify().ok


def test_it_lists_all_when_that_was_left_long_ago(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    clock.now += FRESH_MS
    successor(store, clock)
    assert store.found == [30]


def test_it_lists_all_behind_an_owner_that_was_lost(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    first.upsert(rows(("b", 1, "after it had handed over")))
    successor(store, clock)
    assert store.found == [33, 3], "before the fence, and to publish the newest slot again"


def test_who_has_only_taken_over_leaves_what_it_has_checked(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    clock.now += FRESH_MS
    second = successor(store, clock)
    assert store.found == [30]
    for _ in range(2):
        second.hand_over()
        second = successor(store, clock)
        assert store.found == [3]


def counted_slice(table: hudi.Table) -> SliceLogSize:
    """What the largest slice holds, from a listing of the table."""
    while table.maintain().more:
        pass
    largest = table.largest_slice()
    assert largest is not None
    assert largest.log_files > 0
    return largest


def damaged(content: bytes, change: object) -> bytes:
    """``change``: bytes instead, a number of bytes to keep, a key to remove, or keys with other values."""
    match change:
        case bytes():
            return change
        case int():
            return content[:change]
        case str():
            return json.dumps({key: value for key, value in json.loads(content).items() if key != change}).encode()
        case _:
            return json.dumps(json.loads(content) | change).encode()


DAMAGE = [b"", b"{}", b"[1, 2]", b"\xff\xfe", 9, "slot", "left_ms", "checked", "log_bytes"]
DAMAGE += [{"slot": "11"}, {"left_ms": None}, {"checked": 2}, {"log_files": "1"}, {"log_bytes": 0.5}]


@pytest.mark.parametrize("change", DAMAGE)
def test_a_file_that_cannot_be_read_says_nothing(store: Listing, clock: SetClock, first: hudi.Table, change: object) -> None:
    counted = counted_slice(first)
    first.hand_over()
    left = Path(first.url.removeprefix("file://")) / LEFT
    whole = left.read_bytes()
    left.write_bytes(damaged(whole, change))
    second = successor(store, clock)
    assert (store.found, second.largest_slice()) == ([30], None)
    assert counted_slice(second) == counted


def test_a_time_that_is_none_says_nothing_of_the_timeline(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    left = Path(first.url.removeprefix("file://")) / LEFT
    left.write_bytes(damaged(left.read_bytes(), {"checked": "9"}))
    successor(store, clock)
    assert store.found == [30]


def test_a_lost_instant_that_came_since_is_put_back(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    for file in files_of(store, -1):
        file.unlink()
    second = successor(store, clock)
    assert notes(second) == {"a": "a9"}
    assert second.verify().ok


def test_an_older_one_is_named_by_reads_and_put_back_by_who_lists_all(store: Listing, clock: SetClock, first: hudi.Table) -> None:
    first.hand_over()
    for file in files_of(store, 3):
        file.unlink()
    second = successor(store, clock)
    assert store.found == [3]
    with pytest.raises(MissingFileError):
        second.scan()
    clock.now += FRESH_MS
    assert successor(store, clock).verify().ok
    assert notes(hudi.open_table(first.url)) == {"a": "a9"}


def test_f1_what_another_program_wrote_since_is_noticed(
    store: Listing, clock: SetClock, first: hudi.Table, tmp_path: Path
) -> None:
    first.hand_over()
    clock.now += 1000
    with other_program(tmp_path / "table", system=system(clock)) as theirs:
        theirs.upsert(rows(("b", 1, "theirs")))
    second = open_on(store, system(clock))
    with pytest.raises(ForeignWriterError):
        second.own()


def test_on_a_disk_where_listing_costs_nothing_all_is_listed(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "a")))
    while table.maintain().more:
        pass
    table.hand_over()
    assert json.loads((tmp_path / "table" / LEFT).read_bytes())["checked"] == ""
