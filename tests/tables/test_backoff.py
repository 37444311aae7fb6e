"""Pauses between tries."""

from headgate_tables.backoff import Backoff


def test_pauses_double_from_the_first_to_the_longest_and_stay_there() -> None:
    assert [Backoff(0.5, 3.0).after(failures) for failures in range(6)] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_no_count_of_failures_is_too_large() -> None:
    assert Backoff(0.5, 3.0).after(10**9) == 3.0
