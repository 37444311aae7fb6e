"""What others notice of an attack: which calls count for which time, and when all is as it was."""

import time

import pytest

from bench.attacks.noticed import Calls, p99, p99_returned


def calls(*stretches: tuple[float, float, float]) -> Calls:
    """Of each stretch a call every 10 ms from its begin to its end, which takes so long."""
    made = Calls()
    for begin, end, seconds in stretches:
        made.took += [(begin + 0.01 * number, seconds) for number in range(round((end - begin) / 0.01))]
    return made


def test_a_call_counts_for_every_time_in_which_it_was_under_way() -> None:
    under_way = Calls([(0.0, 1.0), (2.0, 3.0), (6.0, 0.5)])
    assert under_way.between(0.0, 2.0) == [1.0]
    assert under_way.between(4.0, 6.0) == [3.0]
    assert under_way.between(4.0, 7.0) == [3.0, 0.5]


def test_the_p99_of_few_calls_is_none_that_nobody_waited() -> None:
    assert p99([0.25]) == 0.25
    assert p99([0.01] * 9 + [0.5]) <= 0.5


async def test_latency_is_back_with_the_first_second_in_which_calls_are_as_fast_as_before() -> None:
    ended = time.monotonic() - 100
    quick, slow = 0.001, 0.05
    found = await p99_returned(calls((ended, ended + 3, slow), (ended + 3, ended + 6, quick)), 2 * quick, ended)
    assert 2.9 < found < 3.1
    again = calls((ended, ended + 0.5, quick), (ended + 0.5, ended + 2, slow), (ended + 2, ended + 6, quick))
    assert 1.9 < await p99_returned(again, 2 * quick, ended) < 2.1
    assert await p99_returned(calls((ended, ended + 6, quick)), 2 * quick, ended) == 0.0


@pytest.mark.slow
async def test_latency_that_does_not_come_back_is_given_up_after_a_minute() -> None:
    ended = time.monotonic() - 100
    assert 59 < await p99_returned(calls((ended, ended + 70, 0.05)), 0.002, ended) < 61
