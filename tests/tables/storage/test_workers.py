"""Many files at once: which of several errors is told, and what is kept of them afterwards."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate_tables.errors import StoreFullError, SyncFailedError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.workers import THREADS, Workers, both
from headgate_tables.system import SystemIds
from support.faults import InPlaceStore
from support.processes import READY_S

MEET_S = 20.0


@pytest.mark.parametrize("caller", ["full", "not synced"])
def test_a_failed_sync_is_told_before_any_other_error(caller: str) -> None:
    """Hazard H14: taken for a full disk, the same would be tried again by a process that must not."""
    here, both = threading.current_thread(), threading.Barrier(2)

    def work(item: int) -> None:
        both.wait(READY_S)  # each of the two threads has one of the two items
        if (threading.current_thread() is here) == (caller == "full"):
            raise StoreFullError("no space", fix="Make room.")
        raise SyncFailedError("fsync failed", fix="Check the disk.")

    with pytest.raises(SyncFailedError):
        Workers(2).map(work, [1, 2])


def test_the_first_error_is_told_when_the_others_have_ended_and_no_more_items_are_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise StoreFullError("no space", fix="Make room.")

    with pytest.raises(StoreFullError):
        Workers(2).map(work, list(range(100)))
    assert len(begun) <= 2


class File:
    """What is mapped, and what becomes of it."""


@contextmanager
def all_helpers_busy() -> Iterator[None]:
    begun, go = threading.Barrier(THREADS + 2), threading.Event()

    def wait(_: int) -> None:
        begun.wait(READY_S)
        go.wait(READY_S)

    caller = threading.Thread(target=Workers(THREADS + 1).map, args=(wait, range(THREADS + 1)))
    caller.start()
    begun.wait(READY_S)
    try:
        yield
    finally:
        go.set()
        caller.join()


def test_nothing_of_the_files_is_kept_when_a_helper_comes_late() -> None:
    """The files of a whole chunk were, beside the next chunk, while the helper waited for a thread or for the processor."""
    files = [File(), File()]
    with all_helpers_busy():
        made = Workers(2).map(lambda file: File(), tuple(files))
        seen = [weakref.ref(file) for file in (*files, *made)]
        files.clear()
        made.clear()
        assert [found for found in seen if found() is not None] == []


@pytest.fixture
def far(tmp_path: Path) -> InPlaceStore:
    """As an object store."""
    return InPlaceStore(tmp_path, SystemIds())


def test_an_object_store_is_asked_two_things_at_once(far: InPlaceStore) -> None:
    met = threading.Barrier(2)
    assert both(far, lambda: (met.wait(MEET_S), "a")[1], lambda: (met.wait(MEET_S), 2)[1]) == ("a", 2)


def test_a_disk_is_asked_one_thing_after_the_other_on_the_same_thread(tmp_path: Path) -> None:
    first, second = both(LocalStore(str(tmp_path), SystemIds()), threading.current_thread, threading.current_thread)
    assert first is second is threading.current_thread()


def test_what_the_first_one_raises_is_told_when_the_other_has_ended(far: InPlaceStore) -> None:
    raised, ended = threading.Event(), threading.Event()

    def first() -> None:
        begun.wait(MEET_S)
        raised.set()
        raise StoreFullError("first", fix="Make room.")

    def second() -> None:
        begun.wait(MEET_S)
        raised.wait(MEET_S)
        ended.set()
        raise StoreFullError("second", fix="Make room.")

    begun = threading.Barrier(2)
    with pytest.raises(StoreFullError, match="first"):
        both(far, first, second)
    assert ended.is_set()


def test_what_the_second_one_raises_is_told(far: InPlaceStore) -> None:
    def second() -> None:
        raise StoreFullError("second", fix="Make room.")

    with pytest.raises(StoreFullError, match="second"):
        both(far, lambda: None, second)


def test_two_things_are_asked_also_while_all_helpers_are_busy(far: InPlaceStore) -> None:
    with all_helpers_busy():
        assert both(far, lambda: 1, lambda: both(far, lambda: 2, lambda: 3)) == (1, (2, 3))
