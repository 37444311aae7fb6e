"""Archiving beside file slices that have no base file: hudi-rs leaves out the archived logs of one that has active logs, too."""

from pathlib import Path

import pytest

from demo.witness import half_archived
from headgate_tables.hudi.services.retention import trimming
from headgate_tables.hudi.timeline.active import read_timeline
from support.replay import Entry
from support.served import SMALL, Served
from support.systems import SetClock, system


def quiet(served: Served, number: int) -> None:
    """A commit of one row in a partition that begins with a log: no base file may begin it beside an older open transaction."""
    served.begin(busy(number))
    served.begin(Entry(("quiet", f"q{number}"), number, "quiet"))
    served.commit()
    served.commit()


def busy(number: int) -> Entry:
    return Entry(("a", "u"), 10 + number, "busy")


def instants(served: Served) -> int:
    """Completed ones on the active timeline."""
    return len(read_timeline(served.table._store).completed)


def maintained(served: Served) -> None:
    """All that is due; compactors are at hand."""
    while served.table.maintain().more:
        for plan in list(served.table.plans.values()):
            served.finish(plan)


def slices_of_quiet(served: Served) -> list[tuple[bool, int]]:
    """Whether each has a base file, and its logs; oldest first."""
    [group] = [group for group in served.table.file_groups() if group.partition == "quiet"]
    return [(part.base is not None, len(part.logs)) for part in group.slices()]


@pytest.mark.slow
def test_two_quiet_commits_two_hundred_busy_ones_and_one_more_quiet_one_are_shown_by_all(tmp_path: Path) -> None:
    """With the settings that every table has; within its hour nothing but archiving makes the quiet slice due."""
    clock = SetClock()
    served = Served(tmp_path / "t", event_time=True, system=system(clock), settings={})
    for number in (1, 2):
        quiet(served, number)
    for number in range(3, 203):
        clock.now += 1_000
        served.write(busy(number))
        maintained(served)
        assert instants(served) <= served.table.settings.archive_max
    assert instants(served) < 200
    served.assert_shown()
    quiet(served, 203)
    served.assert_shown()
    assert not half_archived(served.table)
    assert slices_of_quiet(served)[-1] == (True, 1)
    assert served.table.verify().ok


@pytest.mark.slow
def test_archiving_by_hand_keeps_a_slice_without_a_base_file_whole_until_it_is_compacted(tmp_path: Path) -> None:
    served = Served(tmp_path / "t", event_time=True, system=system(SetClock()), settings=SMALL)
    quiet(served, 1)
    first = served.replay.commits[-1].instant
    for number in range(2, 12):
        served.write(busy(number))
    assert max(served.table.archive().instants) < first
    quiet(served, 12)
    served.assert_shown()
    served.compact()
    for number in range(13, 20):
        served.write(busy(number))
        served.assert_past(None, served.points()[-2:])
    served.table.clean()
    assert max(served.table.archive().instants) > first
    quiet(served, 20)
    served.assert_shown()


def test_a_slice_of_which_some_logs_were_archived_already_comes_right_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    served = Served(tmp_path / "t", event_time=True, system=system(clock), settings=SMALL)
    quiet(served, 1)
    for number in range(2, 12):
        served.write(busy(number))
    with monkeypatch.context() as older_version:
        older_version.setattr(trimming, "straddling_instants", lambda *_, **__: set())
        assert served.table.archive().instants
    quiet(served, 12)
    shown = served.rows()
    assert shown["our reader"] == served.replay.rows()
    assert shown["our reader"].keys() - shown["hudi-rs"].keys() == {("quiet", "q1")}, "hudi-rs can do this now: drop the rule"
    assert {path.partition("/")[0] for path in half_archived(served.table)} == {"quiet"}, "the demo and the soak would not see it"
    served.reopen()
    maintained(served)
    served.assert_shown()
    assert not half_archived(served.table)
    assert slices_of_quiet(served)[-1] == (True, 0)
