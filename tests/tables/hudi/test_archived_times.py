"""Completion times of archived instants: the history is read when it has to be, and what leaves the timeline is remembered."""

import pytest

from headgate_tables.hudi.timeline import archived_times
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.archived_times import ArchivedTimes
from headgate_tables.hudi.timeline.instant import NEVER, Instant, State
from headgate_tables.hudi.view import FileGroup, FileSystemView


class History:
    """Archived instants 1 to 4, completed at "1c" to "4c"; notes from which instant on it was read."""

    def __init__(self) -> None:
        self.times = {str(number): f"{number}c" for number in range(1, 5)}
        self.reads: list[str] = []

    def read(self, oldest: str) -> dict[str, str]:
        self.reads.append(oldest)
        return {time: completion for time, completion in self.times.items() if time >= oldest}


def test_the_history_is_read_again_only_for_an_older_instant() -> None:
    history = History()
    times = ArchivedTimes(history.read)
    assert [times.completion(each) for each in ("3", "4", "3", "2", "4")] == ["3c", "4c", "3c", "2c", "4c"]
    assert history.reads == ["3", "2"]


def test_an_instant_that_the_history_does_not_hold_completed_at_its_own_time() -> None:
    history = History()
    assert ArchivedTimes(history.read).completion("0") == "0"


def test_what_was_just_archived_is_known_without_a_read() -> None:
    history = History()
    times = ArchivedTimes(history.read)
    times.note({})
    times.note({"5": "5c", "6": "6c"})
    assert [times.completion(each) for each in ("5", "6")] == ["5c", "6c"]
    assert history.reads == []
    assert (times.completion("4"), times.completion("6")) == ("4c", "6"), "it is read whole, and history.times has no 6"


def test_with_too_many_known_instants_the_history_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived_times, "MOST_KNOWN", 3)
    history = History()
    times = ArchivedTimes(history.read)
    assert times.completion("2") == "2c"
    history.times["5"] = "5c"
    times.note({"5": "5c"})
    assert times.completion("5") == "5c"
    assert history.reads == ["2", "5"]


def test_a_view_knows_when_instants_completed_that_were_archived_under_it() -> None:
    history = History()
    timeline = Timeline()
    timeline.add([Instant(f"{number}", "deltacommit", State.COMPLETED, f"{number}c") for number in range(5, 8)])
    view = FileSystemView(timeline, {}, history.read)
    view.archive_until("6")
    assert [view.completion_of(each) for each in ("5", "6", "7", "8")] == ["5c", "6c", "7c", None]
    assert history.reads == []
    assert view.completion_of("1") == "1c"


def test_slices_come_newest_first_with_what_replaced_them_and_the_newest_base_is_not_asked_for() -> None:
    group = FileGroup("p", "f", {"2": "two", "4": "four", "6": "six"})
    asked: list[str] = []

    def completion_of(instant: str) -> str | None:
        asked.append(instant)
        return {"6": None}.get(instant, f"{instant}c")

    def found(end: str) -> list[tuple[str, str]]:
        return [(part.base_instant, replaced) for part, replaced in group.newest_first(completion_of, end)]

    assert found(NEVER) == [("6", NEVER), ("4", "6"), ("2", "4c")]
    assert found("5") == [("6", "5"), ("4", "5"), ("2", "4c")]
    assert "2" not in asked
    asked.clear()
    alone = FileGroup("p", "f", {"2": "two"})
    assert [replaced for _, replaced in alone.newest_first(completion_of)] == [NEVER]
    assert asked == []
