"""A commit log on a store whose calls a test can change, and what goes wrong in it."""

from collections.abc import Callable

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.storage.store import Outcome
from support.log_layout import LOG_LAYOUT
from support.systems import FaultyStore, SetClock, system

LIBRARY = OwnerProcess("library", "testhost", 1)


def open_log(store: FaultyStore, clock: SetClock | None = None) -> CommitLog:
    return CommitLog(store, LOG_LAYOUT, system(clock), LIBRARY)


def commit(log: CommitLog, instant: str = "") -> str:
    instant = instant or log.begin()
    log.commit(instant, [], lambda completion: [(f"done/{instant}", instant.encode())])
    return instant


def unknown(times: int, folder: str) -> Callable[[str], Outcome | None]:
    """For ``before_create``: so many creates in ``folder`` are lost on the way and get no answer."""
    left = [times]

    def answer(path: str) -> Outcome | None:
        if folder in path and left[0] > 0:
            left[0] -= 1
            return Outcome.UNKNOWN
        return None

    return answer


def busy() -> StoreUnavailableError:
    return StoreUnavailableError("busy", fix="Try again.")
