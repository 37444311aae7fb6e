"""The schedule follows from its seed, and holds what a run promises."""

from collections import Counter

import pytest

from nemesis.faults import FAULTS
from nemesis.schedule import KINDS, SECONDS, Kind, Parts, strikes

PARTS = Parts(("coordinator-1", "coordinator-2"), ("writer-1",), ("compactor-1",), ("one", "two"))
ALL = KINDS["local"]


def test_the_same_seed_gives_the_same_strikes_and_another_one_others() -> None:
    assert list(strikes(7, 30, PARTS, ALL)) == list(strikes(7, 30, PARTS, ALL))
    assert list(strikes(7, 30, PARTS, ALL)) != list(strikes(8, 30, PARTS, ALL))


@pytest.mark.parametrize(("minutes", "times"), [(0.1, 1), (2, 1), (30, 5)])
@pytest.mark.parametrize("store", KINDS)
def test_every_kind_of_a_store_comes_equally_often(store: str, minutes: float, times: int) -> None:
    found = Counter(strike.kind for strike in strikes(1, minutes, PARTS, KINDS[store]))
    assert found == dict.fromkeys(KINDS[store], times)


def test_every_kind_comes_over_some_store_lasts_and_does_something() -> None:
    assert {kind for kinds in KINDS.values() for kind in kinds} == set(Kind) == SECONDS.keys() == FAULTS.keys()


def test_a_run_of_some_kinds_has_no_others() -> None:
    some = [Kind.STORE_FORBIDS, Kind.DISK_FULL]
    assert Counter(strike.kind for strike in strikes(1, 3, PARTS, some)) == dict.fromkeys(some, 4)


def test_strikes_come_in_order_and_within_the_run() -> None:
    begins = [strike.at for strike in strikes(1, 30, PARTS, ALL)]
    assert begins == sorted(begins)
    assert 0 <= begins[0] < begins[-1] < 30 * 60


@pytest.mark.parametrize("seed", range(20))
def test_processes_are_killed_within_the_fault_and_none_that_the_fault_needs(seed: int) -> None:
    found = list(strikes(seed, 30, PARTS, ALL))
    killed = [strike for strike in found if strike.kill]
    assert len(found) / 4 < len(killed) < 3 * len(found) / 4
    for strike in killed:
        assert 0 <= strike.kill_after <= max(1.0, SECONDS[strike.kind])
        assert strike.kill != strike.part
        assert not (strike.kind in (Kind.REDIS_FORGETS, Kind.REDIS_TWICE) and strike.kill == "redis")
