"""The schedule follows from its seed, and holds what a run promises."""

from collections import Counter

import pytest

from nemesis.schedule import SECONDS, Kind, Parts, strikes

PARTS = Parts(("coordinator-1", "coordinator-2"), ("writer-1",), ("compactor-1",), ("one", "two"))


def test_the_same_seed_gives_the_same_strikes_and_another_one_others() -> None:
    assert list(strikes(7, 30, PARTS)) == list(strikes(7, 30, PARTS))
    assert list(strikes(7, 30, PARTS)) != list(strikes(8, 30, PARTS))


@pytest.mark.parametrize(("minutes", "times"), [(0.1, 1), (2, 1), (30, 5)])
def test_every_kind_comes_equally_often(minutes: float, times: int) -> None:
    assert Counter(strike.kind for strike in strikes(1, minutes, PARTS)) == dict.fromkeys(Kind, times)


def test_strikes_come_in_order_and_within_the_run() -> None:
    begins = [strike.at for strike in strikes(1, 30, PARTS)]
    assert begins == sorted(begins)
    assert 0 <= begins[0] < begins[-1] < 30 * 60


@pytest.mark.parametrize("seed", range(20))
def test_processes_are_killed_within_the_fault_and_none_that_the_fault_needs(seed: int) -> None:
    found = list(strikes(seed, 30, PARTS))
    killed = [strike for strike in found if strike.kill]
    assert len(found) / 4 < len(killed) < 3 * len(found) / 4
    for strike in killed:
        assert 0 <= strike.kill_after <= max(1.0, SECONDS[strike.kind])
        assert strike.kill != strike.part
        assert not (strike.kind in (Kind.REDIS_FORGETS, Kind.REDIS_TWICE) and strike.kill == "redis")
