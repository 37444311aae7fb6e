from pathlib import Path

import pytest

from headgate_tables.errors import OptionError, ReopenTable, StoreUnavailableError
from headgate_tables.hudi.leases import (
    GRACE_MS,
    LEASE_FOLDER,
    LONGEST_S,
    ReaderLease,
    drop_expired_leases,
    live_leases,
    take_lease,
)
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.systems import FaultyStore, SetClock

POINT = "20270115080000123"
LATER = "20270115080000456"


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(tmp_path)


def take(store: Store, clock: SetClock, point: str = POINT, seconds: float = 100) -> ReaderLease:
    return take_lease(store, clock, SystemIds(), point=point, seconds=seconds, holder="process 1 on testhost")


def names(store: Store) -> list[str]:
    return store.list_folder(LEASE_FOLDER).files


def test_a_lease_holds_its_point_until_it_is_released(store: FaultyStore) -> None:
    clock = SetClock()
    with take(store, clock) as lease, take(store, clock), take(store, clock, LATER):
        assert lease.point == POINT
        assert live_leases(store, clock.now) == [POINT, LATER]
    assert live_leases(store, clock.now) == names(store) == []


def test_a_lease_ends_a_while_after_its_time_since_clocks_differ(store: FaultyStore) -> None:
    clock = SetClock()
    lease = take(store, clock, seconds=100)
    assert lease.expires_ms == clock.now + 100_000
    assert live_leases(store, lease.expires_ms + GRACE_MS) == [POINT]
    assert live_leases(store, lease.expires_ms + GRACE_MS + 1) == []


def test_a_renewed_lease_holds_on_and_is_one_object(store: FaultyStore) -> None:
    clock = SetClock()
    lease = take(store, clock, seconds=100)
    clock.now += 90_000
    lease.renew()
    assert lease.expires_ms == clock.now + 100_000
    lease.renew(3600)
    assert lease.expires_ms == clock.now + 3_600_000
    assert len(names(store)) == 1
    assert live_leases(store, clock.now + 3_600_000) == [POINT]


def test_a_lease_that_could_not_be_renewed_holds_as_long_as_before(store: FaultyStore) -> None:
    clock = SetClock()
    lease = take(store, clock)

    def refuse(path: str) -> Outcome | None:
        raise StoreUnavailableError("injected", fix="Try again.")

    store.before_create = refuse
    before = lease.expires_ms
    clock.now += 50_000
    with pytest.raises(StoreUnavailableError):
        lease.renew()
    assert lease.expires_ms == before
    assert live_leases(store, clock.now) == [POINT]


def test_a_create_whose_outcome_is_unknown_is_repeated_under_the_same_name(store: FaultyStore) -> None:
    answers = [Outcome.UNKNOWN, Outcome.UNKNOWN]
    store.after_create = lambda path, outcome: answers.pop() if answers else outcome
    take(store, SetClock())
    assert len(names(store)) == 1


def test_an_expired_or_released_lease_cannot_be_renewed(store: FaultyStore) -> None:
    clock = SetClock()
    lease = take(store, clock, seconds=100)
    clock.now += 100_001
    with pytest.raises(ReopenTable):
        lease.renew()
    lease.release()
    lease.release()
    with pytest.raises(ReopenTable):
        lease.renew()


def test_only_leases_of_dead_readers_are_deleted(store: FaultyStore) -> None:
    clock = SetClock()
    take(store, clock, seconds=100)
    take(store, clock, LATER, seconds=200)
    store.create(f"{LEASE_FOLDER}/notes", [b"?"], durable=False)
    drop_expired_leases(store, clock.now + 100_000 + GRACE_MS + 1)
    assert len(names(store)) == 2
    assert live_leases(store, clock.now + 100_000 + GRACE_MS + 1) == [LATER]


@pytest.mark.parametrize("seconds", [0, -1, LONGEST_S + 1])
def test_a_lease_has_a_sensible_length(store: FaultyStore, seconds: float) -> None:
    with pytest.raises(OptionError):
        take(store, SetClock(), seconds=seconds)
