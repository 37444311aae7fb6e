"""The whole table on Google Cloud Storage and Azure Blob Storage: as on S3 (test_on_s3.py), where all of it is tried."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import DeposedError, UnsafeStoreError
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.stores import Endpoint, object_store
from support.systems import SetClock, system
from support.tables import SCHEMA, as_text, by_hudi_rs, keys, rows


@pytest.fixture(scope="module", params=["gcs", "azurite"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with object_store(request.param, tmp_path_factory.mktemp("store")) as endpoint:
        yield endpoint


@pytest.fixture
def proxy(server: Endpoint) -> Iterator[FaultyProxy]:
    with faulty_proxy(server.url) as proxy:
        yield proxy


@pytest.fixture
def url(server: Endpoint) -> str:
    return f"{server.make_bucket(f'bucket-{SystemIds().token()}')}/some/table"


Open = Callable[..., hudi.Table]


@pytest.fixture
def open_lossy(server: Endpoint, proxy: FaultyProxy, url: str) -> Open:
    """A handle that goes through the proxy."""
    through = {**server.options_at(proxy.url), "timeout": "1s"}
    return lambda **options: hudi.open_table(url, storage_options=through, **options)


@pytest.fixture
def table(server: Endpoint, url: str) -> hudi.Table:
    definition: dict[str, Any] = {"record_key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2}
    return hudi.create_table(url, SCHEMA, storage_options=server.options, **definition)


def found(server: Endpoint, url: str) -> dict[str, str]:
    """id to note by a new handle and by hudi-rs, which must agree; verify() has nothing to say."""
    table = hudi.open_table(url, storage_options=server.options)
    verification = table.verify()
    assert verification.ok, verification.findings
    ours = table.scan().to_table().to_pylist()
    theirs = by_hudi_rs(url, server.hudi_rs_options)
    assert as_text(ours) == as_text([{name: row[name] for name in SCHEMA.names} for row in theirs])
    return {row["id"]: row["note"] for row in ours}


@pytest.mark.slow
def test_upserts_deletes_and_a_compaction_are_read_by_us_and_by_hudi_rs(server: Endpoint, url: str, table: hudi.Table) -> None:
    for number in range(3):
        parts = [rows(("a", number, str(number)), ("b", number, str(number)), part=part) for part in ("p", "a=b c/é")]
        table.upsert(pa.concat_tables(parts))
    table.delete(keys(("b", 9)))
    table.upsert(rows(("c", 1, "c")))
    assert table.scan().to_table().num_rows == 4
    table.compact()
    assert found(server, url) == {"a": "2", "b": "2", "c": "c"}


@pytest.mark.slow
@pytest.mark.parametrize("server", ["azurite"], indirect=True)
def test_a_table_at_hadoops_address_is_read_by_hudi_rs(server: Endpoint, url: str) -> None:
    bucket = url.split("/")[2]
    url = f"abfss://{bucket}@{server.options['account_name']}.dfs.core.windows.net/some/table"
    table = hudi.create_table(url, SCHEMA, record_key="id", partition_by="part", storage_options=server.options)
    table.upsert(rows(("a", 1, "a")))
    assert found(server, url) == {"a": "a"}


@pytest.mark.slow
def test_of_two_handles_one_is_deposed_and_nothing_is_lost(server: Endpoint, url: str, table: hudi.Table) -> None:
    second = hudi.open_table(url, storage_options=server.options)
    table.upsert(rows(("a", 1, "first")))
    second.upsert(rows(("b", 1, "second")))
    with pytest.raises(DeposedError, match="took the table over"):
        table.upsert(rows(("c", 1, "first")))
    assert found(server, url) == {"a": "first", "b": "second"}


@pytest.mark.slow
@pytest.mark.parametrize("path", [r"/slot/", r"\.parquet$", r"\.log\.1", r"_\d{17}\.deltacommit$"])
@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.DROP_REQUEST, 503])
@pytest.mark.usefixtures("table")
def test_c4_a_lost_answer_or_request_changes_nothing(
    server: Endpoint, url: str, open_lossy: Open, proxy: FaultyProxy, path: str, fault: Fault | int
) -> None:
    lossy = open_lossy()
    lossy.upsert(rows(("a", 1, "first")))
    proxy.arm("PUT", fault, path=path)
    lossy.upsert(pa.concat_tables([rows(("a", 2, "second")), rows(("b", 1, "second"), part="new")]))
    assert not proxy.is_armed
    assert found(server, url) == {"a": "second", "b": "second"}


@pytest.mark.slow
@pytest.mark.usefixtures("table")
def test_t6_the_next_writer_publishes_what_a_crash_after_the_slot_left(
    server: Endpoint, url: str, open_lossy: Open, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = open_lossy()
    lossy.upsert(rows(("a", 1, "x")))
    transaction = lossy.transaction()
    transaction.upsert(rows(("a", 2, "won"), ("b", 1, "won")))
    proxy.arm("PUT", Fault.DROP_REQUEST, path=f"/{transaction.instant}_")
    with monkeypatch.context() as patch:
        patch.setattr("headgate_tables.system.SystemClock.sleep", killed)  # at the first repeat
        with pytest.raises(KeyboardInterrupt, match="killed"):
            transaction.commit()
    assert len(hudi.open_table(url, storage_options=server.options).commits()) == 1
    hudi.open_table(url, storage_options=server.options).upsert(rows(("c", 1, "x")))
    assert found(server, url) == {"a": "won", "b": "won", "c": "x"}


@pytest.mark.slow
def test_w3_the_next_writer_sweeps_what_a_crash_before_the_slot_left(server: Endpoint, url: str, table: hudi.Table) -> None:
    table.upsert(rows(("a", 1, "x")))
    crashed = hudi.open_table(url, storage_options=server.options).transaction()
    crashed.upsert(rows(("a", 2, "dead"), ("b", 2, "dead")))
    bucket = url.split("/")[2]
    assert [key for key in server.keys(bucket) if crashed.instant in key and "/p/" in key]
    hudi.open_table(url, storage_options=server.options).upsert(rows(("c", 1, "x")))
    assert [key for key in server.keys(bucket) if crashed.instant in key] == []
    assert found(server, url) == {"a": "x", "c": "x"}


@pytest.mark.parametrize("server", ["gcs"], indirect=True)  # Azure's requests are signed with their condition
def test_a_store_that_ignores_conditions_gets_no_table(server: Endpoint, url: str, proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[Fault.DROP_CONDITION] * 9)
    with pytest.raises(UnsafeStoreError, match="ignores conditional writes"):
        hudi.create_table(url, SCHEMA, record_key="id", storage_options=server.options_at(proxy.url), system=system(SetClock()))
    assert server.keys(url.split("/")[2]) == []


def killed(*arguments: object) -> None:
    raise KeyboardInterrupt("killed")
