"""What only an object store does: answers that are lost or refused, exact keys, few requests."""

import io
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import GenericError

from headgate_tables.errors import CorruptFileError, StoreDeniedError, StoreFullError, StoreUnavailableError, UnsafeStoreError
from headgate_tables.storage.open import open_store
from headgate_tables.storage.s3_answers import outcome_of
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.names import LITERAL_NAMES
from support.s3 import S3Endpoint


@pytest.fixture
def proxy(s3: S3Endpoint) -> Iterator[FaultyProxy]:
    with faulty_proxy(s3.url) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy: FaultyProxy, s3: S3Endpoint, bucket: str) -> Store:
    """A store that reaches its bucket through the proxy."""
    options = {**s3.options, "endpoint": proxy.url, "timeout": "500ms"}
    return open_store(f"s3://{bucket}/some/table", options, SystemIds())


@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.SWALLOW_ANSWER])
def test_a_create_whose_answer_is_lost_is_unknown_and_its_repeat_finds_our_bytes(
    behind: Store, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.arm("PUT", fault)
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.UNKNOWN
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.EXISTS
    assert behind.get("slot/1").to_pybytes() == b"ours"


def test_a_create_whose_answer_is_lost_loses_to_who_was_first(behind: Store, remote: Store, proxy: FaultyProxy) -> None:
    assert remote.create("slot/1", [b"theirs"], durable=True) is Outcome.CREATED
    proxy.arm("PUT", Fault.DROP_ANSWER)
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.UNKNOWN
    assert behind.create("slot/1", [b"ours"], durable=True) is Outcome.EXISTS
    assert behind.get("slot/1").to_pybytes() == b"theirs"


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


@pytest.mark.parametrize("named", [200, 404, 501, 507])
def test_a_name_that_reads_like_an_answer_is_none(named: int) -> None:
    """The client's error begins with the key as it is, and a partition's value may be any text."""
    said = "Error performing PUT http://store/x in 1ms - Server returned non-2xx status code: {}"
    key = f"p={said.format(named)}/file"
    error = GenericError(f"Generic S3 error: {key}: {said.format(503)}: slow down")
    assert outcome_of(error, key) is Outcome.UNKNOWN


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
        ("POST", lambda store: store.delete(["file"])),
        ("PUT", lambda store: store.replace("file", [b"y"])),
    ],
)
def test_a_missing_permission_is_reported(
    behind: Store, proxy: FaultyProxy, method: str, call: Callable[[Store], object]
) -> None:
    behind.create("file", [b"x"], durable=True)
    proxy.arm(method, 403, 403)
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


def test_a_store_that_is_not_there_is_reported(s3: S3Endpoint, bucket: str) -> None:
    with faulty_proxy(s3.url) as gone:
        options = {**s3.options, "endpoint": gone.url}
    store = open_store(f"s3://{bucket}", options, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.UNKNOWN
    with pytest.raises(StoreUnavailableError, match="Check the endpoint"):
        store.get("file")


def test_a_missing_bucket_is_reported(s3: S3Endpoint) -> None:
    store = open_store("s3://no-such-bucket/table", s3.options, SystemIds())
    for attempt in (lambda: store.list_folder(""), lambda: store.create("file", [b"x"], durable=True)):
        with pytest.raises(StoreDeniedError, match="Create the bucket"):
            attempt()


def test_a_name_is_stored_under_exactly_that_key(s3: S3Endpoint, bucket: str) -> None:
    for prefix in ["", "pre%20fix é/a=b"]:
        store = open_store(f"s3://{bucket}/{prefix}", s3.options, SystemIds())
        for name in LITERAL_NAMES:
            assert store.create(f"{name}/{name}", [b"x"], durable=False) is Outcome.CREATED
    keys = {f"{prefix}{name}/{name}" for name in LITERAL_NAMES for prefix in ["", "pre%20fix é/a=b/"]}
    assert set(s3.keys(bucket)) == keys


def test_folder_markers_of_hadoop_are_not_files(s3: S3Endpoint, bucket: str, remote: Store) -> None:
    client = s3.client()
    for key in ["some/table/", "some/table/a/", "some/table/a/file", "some/table/b/"]:
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    client.close()
    assert remote.list_folder("").files == []
    assert sorted(remote.list_folder("").folders) == ["a", "b"]
    assert remote.list_folder("a").files == ["file"]
    assert remote.list_folder("a", after="").files == ["file"]
    remote.delete_folder("a")
    assert remote.list_folder("a").files == []


@pytest.mark.parametrize("s3", ["moto"], indirect=True)  # versitygw makes no such key: its keys are paths
def test_a_key_that_no_path_can_name_is_reported(s3: S3Endpoint, bucket: str, remote: Store) -> None:
    client = s3.client()
    client.put_object(Bucket=bucket, Key="some/table/a//file", Body=b"")
    client.close()
    with pytest.raises(CorruptFileError, match="Remove that key"):
        remote.list_folder("a")


def test_a_listing_after_a_name_asks_only_for_what_follows(behind: Store, remote: Store, proxy: FaultyProxy) -> None:
    remote.create_all([(f"slot/{number:04}", [b"x"]) for number in range(30)], durable=True)
    remote.create_all([(f"slot/history/{number:04}", [b"x"]) for number in range(30)], durable=True)
    found = behind.list_folder("slot", after="0027")
    assert (found.files, found.folders) == (["0028", "0029"], ["history"])
    assert len(proxy.seen) == 2
    assert all("start-after=" in request for request in proxy.seen)


def test_a_small_parquet_file_is_read_in_one_request(behind: Store, proxy: FaultyProxy) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000), "b": range(1000)}), sink)
    behind.create("file.parquet", [sink.getvalue()], durable=True)
    proxy.seen.clear()
    with behind.open_input("file.parquet") as source:
        assert pq.ParquetFile(source).read().num_rows == 1000
    assert len(proxy.seen) == 1


def test_a_large_parquet_file_is_read_in_few_requests(behind: Store, remote: Store, proxy: FaultyProxy) -> None:
    rows = 400_000
    sink = io.BytesIO()
    table = pa.table({name: range(rows) for name in "abcdefgh"})
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=rows // 4)
    assert len(sink.getvalue()) > 25_000_000
    assert remote.create("file.parquet", [sink.getvalue()], durable=True) is Outcome.CREATED
    proxy.seen.clear()
    with behind.open_input("file.parquet") as source:
        assert pq.ParquetFile(source).read(columns=["c"]).column("c").equals(table.column("c"))
    assert len(proxy.seen) == 1 + 4
    proxy.seen.clear()
    with behind.open_input("file.parquet") as source:
        assert source.read() == sink.getvalue()
    assert len(proxy.seen) == 1 + 4  # 8 MiB each


def test_retries_of_creates_stay_off_whatever_the_environment_says(
    behind: Store, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch, s3: S3Endpoint, bucket: str
) -> None:
    """Rule C3."""
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    store = open_store(f"s3://{bucket}/some/table", {**s3.options, "endpoint": proxy.url}, SystemIds())
    proxy.arm("PUT", 503)
    assert store.create("slot/1", [b"x"], durable=True) is Outcome.UNKNOWN
    assert len(proxy.seen) == 1
    assert store.create("slot/1", [b"x"], durable=True) is Outcome.CREATED
    assert store.create("slot/1", [b"y"], durable=True) is Outcome.EXISTS


def test_an_object_store_has_no_stage(remote: Store) -> None:
    assert not remote.stages
    for mistake in (
        lambda: remote.stage([("a", [b"x"])]),
        lambda: remote.link("a", "b"),
        lambda: remote.rename_folder("a", "b"),
    ):
        with pytest.raises(RuntimeError, match=r"ask Store\.stages first"):
            mistake()
