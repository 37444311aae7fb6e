"""Many files at once: which of several errors is told."""

import threading

import pytest

from headgate_tables.errors import StoreFullError, SyncFailedError
from headgate_tables.storage.workers import Workers
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
