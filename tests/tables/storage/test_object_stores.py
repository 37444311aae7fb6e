"""What every object store does and a local folder does not: answers that are lost or refused, few requests."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.errors import StoreDeniedError, StoreFullError, StoreUnavailableError, UnsafeStoreError
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.stores import Endpoint


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.SWALLOW_ANSWER])
def test_a_create_whose_answer_is_lost_is_unknown_and_its_repeat_finds_our_bytes(
    behind: Store, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.arm("PUT", fault)
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.UNKNOWN
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.EXISTS
    assert behind.get("slot/1").to_pybytes() == b"ours"


@pytest.mark.slow
def test_a_create_whose_answer_is_lost_loses_to_who_was_first(behind: Store, straight: Store, proxy: FaultyProxy) -> None:
    assert straight.create("slot/1", [b"theirs"], durable=True) is Outcome.CREATED
    proxy.arm("PUT", Fault.DROP_ANSWER)
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.UNKNOWN
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.EXISTS
    assert behind.get("slot/1").to_pybytes() == b"theirs"


@pytest.mark.slow
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_an_answer_that_decides_nothing_is_unknown_and_not_retried(behind: Store, proxy: FaultyProxy, status: int) -> None:
    proxy.arm("PUT", status)
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.UNKNOWN
    assert len(proxy.seen) == 1
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.CREATED


@pytest.mark.parametrize(
    ("status", "error", "step"),
    [
        (400, StoreDeniedError, "Check the credentials"),
        (401, StoreDeniedError, "Check the credentials"),
        (403, StoreDeniedError, "Check the credentials"),
        (404, StoreDeniedError, "Create the bucket"),
        (301, StoreDeniedError, "region"),
        (501, UnsafeStoreError, "If-None-Match"),
        (507, StoreFullError, "Free space"),
    ],
)
def test_a_refused_create_says_why(behind: Store, proxy: FaultyProxy, status: int, error: type[Exception], step: str) -> None:
    proxy.arm("PUT", status)
    with pytest.raises(error, match=step):
        behind.create("slot/1", [b"ours"], durable=True)
    assert len(proxy.seen) == 1
    assert behind.size("slot/1") is None


def test_a_read_is_tried_again_when_the_store_is_busy(behind: Store, proxy: FaultyProxy) -> None:
    behind.create("file", [b"x"], durable=True)
    proxy.arm("GET", 503, Fault.DROP_ANSWER)
    assert behind.get("file").to_pybytes() == b"x"
    proxy.arm("GET", 503)
    assert behind.list_folder("").files == ["file"]
    proxy.arm("HEAD", 503)
    assert behind.size("file") == 1


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("GET", lambda store: store.get("file")),
        ("GET", lambda store: store.open_input("file")),
        ("GET", lambda store: store.list_folder("")),
        ("GET", lambda store: store.list_folder("", after="a")),
        ("GET", lambda store: store.delete_folder("folder")),
        ("HEAD", lambda store: store.size("file")),
        ("HEAD", lambda store: store.version("file")),
        ("DELETE", lambda store: store.delete(["file"])),
        ("PUT", lambda store: store.replace("file", [b"y"])),
    ],
)
def test_a_missing_permission_is_reported(
    behind: Store, proxy: FaultyProxy, server: Endpoint, method: str, call: Callable[[Store], object]
) -> None:
    behind.create("file", [b"x"], durable=True)
    proxy.arm(server.deletes_with if method == "DELETE" else method, 403, 403)
    with pytest.raises(StoreDeniedError, match="Check the credentials"):
        call(behind)
    proxy.disarm()
    assert behind.get("file").to_pybytes() == b"x"


def test_an_error_in_the_middle_of_a_columnar_read_keeps_its_class(behind: Store, proxy: FaultyProxy) -> None:
    behind.create("file", [bytes(5_000_000)], durable=True)
    with behind.open_input("file") as source:
        proxy.arm("GET", 403)
        with pytest.raises(StoreDeniedError, match="Check the credentials"):
            source.read_at(1000, 0)


@pytest.mark.slow
def test_a_store_that_is_not_there_is_reported(server: Endpoint, address: str) -> None:
    with faulty_proxy(server.url) as gone:
        options = server.options_at(gone.url)
    store = open_store(address, options, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.UNKNOWN
    with pytest.raises(StoreUnavailableError, match="Check the endpoint"):
        store.get("file")


def test_a_missing_bucket_is_reported(server: Endpoint, address: str) -> None:
    missing = address.partition("://")[0] + "://no-such-bucket/table"
    store = open_store(missing, server.options, SystemIds())
    for attempt in (lambda: store.list_folder(""), lambda: store.create("file", [b"x"], durable=True)):
        with pytest.raises(StoreDeniedError, match="Create the bucket"):
            attempt()


def test_a_small_parquet_file_is_read_in_one_request(behind: Store, proxy: FaultyProxy) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000), "b": range(1000)}), sink)
    behind.create("file.parquet", [sink.getvalue()], durable=True)
    proxy.seen.clear()
    with behind.open_input("file.parquet") as source:
        assert pq.ParquetFile(source).read().num_rows == 1000
    assert len(proxy.seen) == 1


def test_an_object_store_has_no_stage(straight: Store) -> None:
    assert not straight.stages
    for mistake in (
        lambda: straight.stage([("a", [b"x"])]),
        lambda: straight.link_all([("a", "b")]),
        lambda: straight.rename_folder("a", "b"),
    ):
        with pytest.raises(RuntimeError, match=r"ask Store\.stages first"):
            mistake()


@pytest.mark.slow
def test_deleting_goes_on_behind_what_is_missing(straight: Store) -> None:
    """Google and Azure report a missing object, and a client that stops there leaves the rest."""
    straight.create_all([(f"file{number:03}", [b"x"]) for number in range(40)], durable=True)
    names = [name for number in range(40) for name in (f"missing{number:03}", f"file{number:03}")]
    straight.delete(names)
    assert straight.list_folder("").files == []


def test_a_listing_after_a_name_leaves_out_what_comes_before(straight: Store) -> None:
    straight.create_all([(f"slot/{number:04}", [b"x"]) for number in range(30)], durable=True)
    straight.create("slot/history/1", [b"x"], durable=True)
    found = straight.list_folder("slot", after="0027")
    assert (sorted(found.files), found.folders) == (["0028", "0029"], ["history"])


def test_a_large_file_is_read_from_its_end(straight: Store) -> None:
    content = bytes(range(256)) * 4096
    assert straight.create("file", [content], durable=True) is Outcome.CREATED
    with straight.open_input("file") as source:
        assert source.size() == len(content)
        assert source.read_at(1000, len(content) - 1000) == content[-1000:]
        assert source.read_at(1000, 300_000) == content[300_000:301_000]


@pytest.mark.parametrize("server", ["gcs", "azurite"], indirect=True)
def test_retries_of_creates_stay_off(behind: Store, proxy: FaultyProxy) -> None:
    """Rule C3."""
    proxy.arm("PUT", 503)
    assert behind.create("slot/1", [b"x"], durable=True) is Outcome.UNKNOWN
    assert len(proxy.seen) == 1
    assert behind.create("slot/1", [b"x"], durable=True) is Outcome.CREATED
    assert behind.create("slot/1", [b"y"], durable=True) is Outcome.EXISTS


def test_the_store_copies_a_file_without_sending_its_bytes(behind: Store, straight: Store, proxy: FaultyProxy) -> None:
    content = bytes(range(256)) * 4096
    assert straight.create("p/old name=1", [content], durable=True) is Outcome.CREATED
    behind.copy("p/old name=1", "p/new%20name")
    assert straight.get("p/new%20name").to_pybytes() == content
    assert not [seen for seen in proxy.seen if seen.startswith("GET")]


def test_a_copy_leaves_a_name_that_is_taken_alone_and_misses_a_source_that_is_gone(straight: Store) -> None:
    straight.create("old", [b"old"], durable=True)
    straight.create("new", [b"new"], durable=True)
    straight.copy("old", "new")
    assert straight.get("new").to_pybytes() == b"new"
    with pytest.raises(FileNotFoundError):
        straight.copy("gone", "other")
    assert straight.size("other") is None
