"""How often a caller may be refused before it waits."""

import pytest

from headgate_runtime.caller_rates import CallerRates
from support.hand_clock import HandClock


def test_some_refusals_are_free_and_those_behind_them_wait_for_their_turn() -> None:
    clock = HandClock()
    rates = CallerRates(clock, at_once=3, per_second=10, longest_s=5)
    for _ in range(3):
        rates.count("ann")
        assert rates.delay("ann") == 0
    rates.count("ann")
    assert rates.delay("ann") == pytest.approx(0.1)
    rates.count("ann")
    assert rates.delay("ann") == pytest.approx(0.2)
    clock.now += 0.2
    assert rates.delay("ann") == pytest.approx(0)


def test_a_caller_pays_for_its_own_refusals_alone() -> None:
    rates = CallerRates(HandClock(), at_once=1, per_second=10, longest_s=5)
    for _ in range(5):
        rates.count("ann")
    assert rates.delay("ann") > 0
    assert rates.delay("bob") == 0


def test_a_flood_is_forgiven_after_the_longest_wait() -> None:
    clock = HandClock()
    rates = CallerRates(clock, at_once=1, per_second=10, longest_s=2)
    for _ in range(1_000):
        rates.count("ann")
    assert rates.delay("ann") == 2
    clock.now += 2.2
    assert rates.delay("ann") == 0


def test_callers_that_owe_nothing_are_forgotten() -> None:
    clock = HandClock()
    rates = CallerRates(clock, at_once=1, per_second=10, longest_s=2)
    for number in range(10_000):
        rates.count(f"stranger {number}")
        clock.now += 1
    assert len(rates) < 1_000


async def test_a_refusal_that_is_free_does_not_wait() -> None:
    """The clock's sleep never ends."""
    rates = CallerRates(HandClock(), at_once=3, per_second=10, longest_s=5)
    for _ in range(3):
        await rates.wait("ann")
    assert rates.delay("ann") == 0
    rates.count("ann")
    assert rates.delay("ann") > 0
