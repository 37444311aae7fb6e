"""Many files at once: which of several errors is told, and what is kept of them afterwards."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headgate_tables.errors import StoreFullError, SyncFailedError
from headgate_tables.storage.workers import THREADS, Workers
from support.processes import READY_S


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
