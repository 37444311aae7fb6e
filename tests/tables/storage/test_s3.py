"""What only S3 does: names of answers, exact keys, few requests. What all object stores do: test_object_stores.py."""

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import GenericError

from headgate_tables.errors import CorruptFileError
from headgate_tables.storage.answers import outcome_of
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import SystemIds
from support.faulty_proxy import FaultyProxy, faulty_proxy
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


@pytest.mark.parametrize("named", [200, 404, 501, 507])
def test_a_key_that_looks_like_a_status_is_not_taken_for_one(named: int) -> None:
    """The client's error begins with the key as it is, and a partition's value may be any text."""
    said = "Error performing PUT http://store/x in 1ms - Server returned non-2xx status code: {}"
    key = f"p={said.format(named)}/file"
    error = GenericError(f"Generic S3 error: {key}: {said.format(503)}: slow down")
    assert outcome_of(error, key) is Outcome.UNKNOWN


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


@pytest.mark.slow
def test_a_large_parquet_file_is_read_in_few_requests(remote: Store, proxy: FaultyProxy, s3: S3Endpoint, bucket: str) -> None:
    patient = open_store(f"s3://{bucket}/some/table", {**s3.options, "endpoint": proxy.url, "timeout": "60s"}, SystemIds())
    rows = 400_000
    sink = io.BytesIO()
    table = pa.table({name: range(rows) for name in "abcdefgh"})
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=rows // 4)
    assert len(sink.getvalue()) > 25_000_000
    assert remote.create("file.parquet", [sink.getvalue()], durable=True) is Outcome.CREATED
    proxy.seen.clear()
    with patient.open_input("file.parquet") as source:
        assert pq.ParquetFile(source).read(columns=["c"]).column("c").equals(table.column("c"))
    assert len(proxy.seen) == 1 + 4
    proxy.seen.clear()
    with patient.open_input("file.parquet") as source:
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
