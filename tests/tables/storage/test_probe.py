from pathlib import Path

import pytest

from headgate_tables.errors import StoreUnavailableError, UnsafeStoreError
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy
from support.s3 import s3rver_s3
from support.systems import SetClock, system

UNSIGNED = pytest.mark.parametrize("server", ["moto", "gcs"], indirect=True)
"""The others refuse a request of which the proxy has taken a signed header."""


@pytest.mark.slow
def test_a_store_with_exclusive_creates_passes_again_and_again_and_is_left_clean(store: Store) -> None:
    for _ in range(3):
        probe(store, "probes", system())
    assert store.list_folder("probes").files == []
    assert store.list_folder("probes").folders == []


def test_a_store_that_ignores_conditions_is_refused_and_left_clean(tmp_path: Path) -> None:
    with s3rver_s3(tmp_path) as endpoint:
        store = open_store(endpoint.make_bucket("bucket") + "/table", endpoint.options, SystemIds())
        assert store.create("file", [b"1"], durable=True) is Outcome.CREATED
        with pytest.raises(UnsafeStoreError, match=r"[2-8] of 8 simultaneous creates of one file succeeded.*\. Move the table"):
            probe(store, "probes", system())
        assert endpoint.keys("bucket") == ["table/file"]


def test_a_store_that_leaves_some_racers_without_a_verdict_passes(behind: Store, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", 409, 409, 503)
    probe(behind, "probes", system())


def test_a_store_that_gives_no_verdict_at_all_is_unavailable(behind: Store, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[503] * 8)
    with pytest.raises(StoreUnavailableError, match="did not say"):
        probe(behind, "probes", system())
    proxy.arm("PUT", *[None] * 8, *[503] * 5)
    with pytest.raises(StoreUnavailableError, match="did not say"):
        probe(behind, "probes", system())


def test_a_store_that_asks_for_slower_creates_is_waited_for(behind: Store, proxy: FaultyProxy) -> None:
    """Google Cloud Storage refuses a second write within a second under the same name."""
    clock = SetClock()
    proxy.arm("PUT", *[None] * 8, 429, 429)
    probe(behind, "probes", system(clock))
    assert sum(clock.slept) == pytest.approx(0.2 + 0.4)


def test_a_store_that_takes_no_create_at_all_is_refused(behind: Store, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[412] * 8)
    with pytest.raises(UnsafeStoreError, match="none of several"):
        probe(behind, "probes", system())


@UNSIGNED
def test_a_store_that_lets_two_simultaneous_creates_succeed_is_refused(behind: Store, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[Fault.DROP_CONDITION] * 8)
    with pytest.raises(UnsafeStoreError, match="8 of 8 simultaneous creates of one file succeeded"):
        probe(behind, "probes", system())


@UNSIGNED
def test_a_store_that_lets_a_later_create_succeed_is_refused(behind: Store, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[None] * 8, Fault.DROP_CONDITION)
    with pytest.raises(UnsafeStoreError, match="a create on a name that was taken succeeded"):
        probe(behind, "probes", system())
