"""What an error of one table means: its ownership ends, or the process does."""

import pytest

from headgate_coordinator.leadership.troubles import UnforeseenError, trouble_of
from headgate_tables.errors import ClockError, SyncFailedError

LATE = ClockError("the clock is behind", fix="Set it.")
SYNC = SyncFailedError("the disk refused", fix="Look at it.")


def test_an_error_of_the_table_library_is_the_trouble_also_from_a_task_group() -> None:
    assert trouble_of("t", LATE) is LATE
    assert trouble_of("t", ExceptionGroup("tasks", [ExceptionGroup("inner", [LATE])])) is LATE


@pytest.mark.parametrize("others", [[], [LATE], [KeyError("c")]])
def test_h14_a_failed_sync_ends_the_process_whatever_came_with_it(others: list[Exception]) -> None:
    with pytest.raises(SyncFailedError):
        trouble_of("t", ExceptionGroup("tasks", [*others, SYNC]))


def test_an_error_that_nobody_foresaw_says_what_it_is_and_no_more_of_it_than_a_line_holds() -> None:
    trouble = trouble_of("t", ExceptionGroup("tasks", [LATE, KeyError("c" * 10_000)]))
    assert isinstance(trouble, UnforeseenError)
    assert trouble.message.startswith("unexpected error: KeyError: 'ccc")
    assert len(trouble.message) < 300
