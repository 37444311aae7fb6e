"""What an operator is told of work that fails: since when, how often, and what was said last."""

from headgate_coordinator.tables.outage import Outage
from headgate_tables.errors import ClockError, RetryLater, StoreDeniedError, StoreFullError, StoreUnavailableError, TablesError
from support.alarms import text_of

FIRST_MS, LATER_MS = 1_763_820_202_000, 1_763_820_262_000
DENIED = StoreDeniedError("PUT bucket/slot: 403", fix="Check the credentials.")


def test_an_alarm_names_the_first_moment_and_the_last_word() -> None:
    outage = Outage()
    assert text_of(outage.alarm) == ""
    outage.note_failure("slots", StoreUnavailableError("no answer", fix="Wait."), FIRST_MS)
    outage.note_failure("slots", DENIED, LATER_MS)
    assert text_of(outage.alarm) == (
        "the store has denied access since 2025-11-22 14:03:22 UTC (2 times; it is tried again): "
        "PUT bucket/slot: 403. Check the credentials."
    )


def test_it_is_over_once_all_that_failed_has_succeeded() -> None:
    outage = Outage()
    outage.note_failure("slots", DENIED, FIRST_MS)
    outage.note_failure("tidying", DENIED, LATER_MS)
    outage.note_success("slots")
    assert outage.affects("tidying")
    assert not outage.affects("slots")
    assert "14:03:22" in text_of(outage.alarm)
    outage.note_success("tidying")
    assert not outage.is_on
    assert text_of(outage.alarm) == ""
    outage.note_failure("slots", DENIED, LATER_MS)
    assert "14:04:22 UTC (1 times" in text_of(outage.alarm)


def test_every_error_has_words() -> None:
    for error in (ClockError("behind", fix="Set it."), TablesError("odd", fix="Look.")):
        outage = Outage("the list")
        outage.note_failure("slots", error, FIRST_MS)
        assert text_of(outage.alarm).startswith("the list, this has failed since ")
        assert str(error) in text_of(outage.alarm)


def test_every_error_has_a_kind_of_alarm() -> None:
    outage = Outage()
    found = []
    for kind in (StoreUnavailableError, StoreDeniedError, StoreFullError, ClockError, RetryLater):
        outage.note_failure("slots", kind("odd", fix="Look."), FIRST_MS)
        assert outage.alarm is not None
        found.append(outage.alarm.kind.value)
    assert found == ["store_silent", "store_denied", "store_full", "future_times", "store_failed"]
