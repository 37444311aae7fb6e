from dataclasses import replace

import pytest

from headgate_tables.commitlog.times import format_time
from headgate_tables.face.operation import PinnedFile
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.services.planning.choose import choose_slices, may_be_minor, operation_of
from headgate_tables.hudi.services.planning.urgency import SMALL_LOGS, overdue_since
from headgate_tables.hudi.view import FileSlice, LogFile
from support.systems import NOON

MIB = 1 << 20
SETTINGS = TableSettings(
    compaction_commits=10, compaction_first_commits=3, compaction_seconds=3600, compaction_log_bytes=100 * MIB, max_log_files=200
)


def at(seconds: float) -> str:
    """A time, by its distance from noon."""
    return format_time(NOON + int(seconds * 1000))


def slice_of(
    group: str, logs: int, *, size: int = 1000, base: int | None = 400 * MIB, begun: float = -600, straddling: bool = False
) -> FileSlice:
    """One log a second from ``begun`` on; the base file is two seconds older, or half a second younger than the first log's
    instant if that is ``straddling``.
    """
    base_instant = at(begun + 0.5 if straddling else begun - 2)
    instants = [at(begun + number) for number in range(logs)]
    files = tuple(
        LogFile(instant, 1, "0-0-0", log_name(group, instant, 1, "0-0-0"), at(begun + number + 0.9), size)
        for number, instant in enumerate(instants)
    )
    if base is None:
        return FileSlice("p", group, instants[0], None, files)
    return FileSlice("p", group, base_instant, base_name(group, "1-1-1", base_instant), files, base)


def chosen(*slices: FileSlice, settings: TableSettings = SETTINGS, **others: object) -> list[str]:
    arguments = {"now": NOON, "pending": (), "unfinished": [], **others}
    return [part.file_id for part in choose_slices(slices, settings, **arguments)]  # type: ignore[arg-type]


def test_a_slice_is_due_by_the_number_of_its_delta_commits() -> None:
    assert chosen(slice_of("nine", 9)) == []
    assert chosen(slice_of("ten", 10)) == ["ten"]


def test_a_slice_that_is_nearly_due_by_that_number_joins_a_plan_for_others_as_the_last() -> None:
    slices = slice_of("nearly", 9), slice_of("not yet", 8), slice_of("just due", 2, size=50 * MIB)
    assert chosen(*slices) == ["just due", "nearly"]
    assert chosen(*slices[:2]) == [], "it makes no plan"
    assert chosen(*slices, settings=replace(SETTINGS, compaction_target_io_mb=900)) == ["just due"]
    ages = replace(SETTINGS, compaction_trigger="TIME_ELAPSED")
    assert chosen(*slices, settings=ages) == ["just due"], "its number counts for nothing"


def test_several_logs_of_one_commit_count_once() -> None:
    part = slice_of("a", 9)
    twice = (*part.logs, part.logs[-1]._replace(version=2, name="other"))
    assert chosen(replace(part, logs=twice)) == []


def test_a_slice_without_a_base_file_is_due_early() -> None:
    assert chosen(slice_of("two", 2, base=None), slice_of("three", 3, base=None)) == ["three"]


def test_a_slice_is_due_by_the_age_of_its_oldest_log() -> None:
    assert chosen(slice_of("old", 3, begun=-3601), slice_of("young", 3, begun=-3599)) == ["old"]


@pytest.mark.parametrize(
    ("trigger", "due"),
    [
        ("NUM_COMMITS", ["many", "both"]),
        ("TIME_ELAPSED", ["old", "both"]),
        ("NUM_OR_TIME", ["many", "old", "both"]),
        ("NUM_AND_TIME", ["both"]),
    ],
)
def test_the_trigger_says_which_of_number_and_age_count(trigger: str, due: list[str]) -> None:
    slices = slice_of("many", 12), slice_of("old", 2, begun=-9000), slice_of("both", 12, begun=-9000)
    assert sorted(chosen(*slices, settings=replace(SETTINGS, compaction_trigger=trigger))) == sorted(due)


def test_log_bytes_make_a_slice_due_whatever_the_trigger() -> None:
    settings = replace(SETTINGS, compaction_trigger="TIME_ELAPSED")
    slices = slice_of("much", 2, size=51 * MIB), slice_of("less", 2, size=49 * MIB)
    assert chosen(*slices, settings=settings) == ["much"]


def test_as_many_log_bytes_as_base_bytes_make_a_slice_due() -> None:
    slices = slice_of("read twice", 2, size=20 * MIB, base=39 * MIB), slice_of("less", 2, size=20 * MIB, base=41 * MIB)
    assert chosen(*slices) == ["read twice"]


def test_tiny_slices_wait_for_the_number_of_their_commits() -> None:
    assert chosen(slice_of("tiny", 2, size=SMALL_LOGS // 2 - 1, base=1)) == []
    assert chosen(slice_of("not tiny", 2, size=SMALL_LOGS // 2, base=1)) == ["not tiny"]


def test_slices_near_the_limits_go_first_and_then_those_that_hold_archiving_back() -> None:
    by_number = slice_of("by number", 90)
    straddling = slice_of("straddling", 2, straddling=True)
    near = slice_of("near", 100, begun=-700)
    settings = replace(SETTINGS, max_log_files=240, compaction_commits=2)
    assert chosen(by_number, straddling, near, settings=settings, overdue=at(-599)) == ["near", "straddling", "by number"]


def test_a_slice_near_the_limits_is_due_whatever_the_settings() -> None:
    settings = replace(
        SETTINGS, compaction_commits=1000, compaction_trigger="NUM_COMMITS", max_log_files=50, max_log_bytes=100 * MIB
    )
    slices = slice_of("files", 20), slice_of("bytes", 2, size=20 * MIB), slice_of("neither", 19, size=2 * MIB)
    assert sorted(chosen(*slices, settings=settings)) == ["bytes", "files"]


def test_an_old_log_holds_archiving_back_only_when_it_straddles_its_base_file_or_has_none() -> None:
    slices = slice_of("straddling", 2, straddling=True), slice_of("no base", 1, base=None), slice_of("plain", 2)
    assert chosen(*slices, overdue=at(-599)) == ["no base", "straddling"]
    assert chosen(*slices, overdue=at(-600)) == []


def test_straddling_logs_are_overdue_before_archiving_would_have_to_stop_at_them() -> None:
    instants = [at(number) for number in range(100)]
    settings = replace(SETTINGS, archive_min=40, archive_max=60, clean_commits=10)
    # A compacted slice is read as of 10 more commits before it is cleaned and its straddling log is free.
    assert overdue_since(instants, settings) == instants[-30]
    # What is older than the timeline was archived before it was compacted.
    assert overdue_since(instants[:29], settings) == instants[0]
    assert overdue_since([], settings) == ""


def test_the_worst_come_first_and_the_order_is_always_the_same() -> None:
    slices = [slice_of("b", 12), slice_of("a", 12), slice_of("much", 3, size=90 * MIB), slice_of("worst", 40)]
    assert chosen(*slices) == chosen(*reversed(slices)) == ["worst", "much", "a", "b"]


def test_a_plan_takes_as_many_bytes_as_it_may_and_at_least_one_slice() -> None:
    slices = [slice_of(name, 20 - index, size=MIB, base=100 * MIB) for index, name in enumerate("abc")]
    # Each reads base and logs and writes the base again: 220, 219, 218.
    assert chosen(*slices, settings=replace(SETTINGS, compaction_target_io_mb=439)) == ["a", "b"]
    assert chosen(*slices, settings=replace(SETTINGS, compaction_target_io_mb=438)) == ["a"]
    assert chosen(*slices, settings=replace(SETTINGS, compaction_target_io_mb=1)) == ["a"]


def test_what_an_open_plan_holds_is_never_chosen() -> None:
    slices = slice_of("a", 20), slice_of("b", 20)
    assert chosen(*slices, pending={("p", "a")}) == ["b"]
    assert chosen(*slices, pending={("p", "a"), ("other", "b")}, forced=True) == ["b"]


def test_a_slice_waits_while_an_instant_older_than_one_of_its_logs_is_pending() -> None:
    part = slice_of("a", 20)  # its newest log is of -581
    for forced in (False, True):
        assert chosen(part, unfinished=[at(-100), at(-581.5)], forced=forced) == []
        assert chosen(part, unfinished=[at(-100), at(-580.5)], forced=forced) == ["a"]


def test_by_hand_every_slice_with_logs_is_chosen() -> None:
    settings = replace(SETTINGS, compaction_target_io_mb=1)
    assert chosen(slice_of("small", 1), slice_of("none", 0), slice_of("big", 9), settings=settings, forced=True) == [
        "big",
        "small",
    ]


def test_an_operation_pins_names_and_sizes_in_merge_order() -> None:
    part = slice_of("00000001-aaaa-0", 2, size=7, base=9)
    operation = operation_of(part, at(0))
    assert operation.base == PinnedFile(part.base or "", 9)
    assert operation.logs == tuple(PinnedFile(log.name, 7) for log in part.logs)
    assert operation.path == f"p/00000001-aaaa-0_0-0-0_{at(0)}.parquet"
    assert operation_of(slice_of("a", 1, base=None), at(0)).base is None


def test_a_slice_in_which_nothing_was_written_since_a_minor_compaction_gets_its_base_file() -> None:
    """It is due by its age. Its one log, merged again each hour, would say the same."""
    settings = TableSettings(compaction_minor_fraction=0.5)
    part = slice_of("a", 1)
    merged = replace(part, base_instant=part.logs[0].instant)
    assert (may_be_minor(part, settings), may_be_minor(merged, settings)) == (True, False)


def test_a_log_that_completed_after_the_plans_instant_cannot_be_pinned() -> None:
    part = slice_of("a", 2)
    newest = part.logs[-1].completion
    assert operation_of(part, newest + "1").logs
    with pytest.raises(ValueError, match="newer than its plan"):
        operation_of(part, newest)
