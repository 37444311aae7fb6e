"""Compaction where files are created in place: answers that get lost, and uploads that come to nothing."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from headgate_tables import hudi
from headgate_tables.errors import StoreDeniedError, StoreUnavailableError
from headgate_tables.hudi.services.compaction import pinned_slice
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.minor import SETTINGS as MINOR
from support.minor import compact as minor_compact
from support.minor import only_minor
from support.s3 import S3Endpoint, real_s3
from support.tables import SCHEMA, by_hudi_rs, keys, rows

BASE_FILE = r"\.parquet$"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    with real_s3(tmp_path_factory.mktemp("s3")) as endpoint:
        yield endpoint


@dataclass(frozen=True)
class Place:
    """A bucket with a table, and a proxy before it."""

    bucket: str
    endpoint: S3Endpoint
    proxy: FaultyProxy

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/table"

    def open(self) -> hudi.Table:
        through = {**self.endpoint.options, "endpoint": self.proxy.url, "timeout": "5s"}
        return hudi.open_table(self.url, storage_options=through)

    def notes(self) -> dict[str, str]:
        return {row["id"]: row["note"] for row in by_hudi_rs(self.url, self.endpoint.hudi_rs_options)}

    def base_files(self) -> list[str]:
        return [key for key in self.endpoint.keys(self.bucket) if key.endswith(".parquet") and ".hoodie" not in key]


@pytest.fixture
def place(s3: S3Endpoint, request: pytest.FixtureRequest) -> Iterator[Place]:
    bucket = f"compaction-{zlib.crc32(request.node.name.encode())}"
    s3.make_bucket(bucket)
    table = hudi.create_table(
        f"s3://{bucket}/table", SCHEMA, record_key="id", ordering="ts", buckets=1, storage_options=s3.options
    )
    table.upsert(rows(*((letter, 10, f"base {letter}") for letter in "abcdef")))
    table.upsert(rows(("b", 11, "newer"), ("c", 9, "late"), ("z", 1, "fresh")))
    table.delete(keys(("d", 11)))
    with faulty_proxy(s3.options["endpoint"]) as proxy:
        yield Place(bucket, s3, proxy)


WANTED = {"a": "base a", "b": "newer", "c": "base c", "e": "base e", "f": "base f", "z": "fresh"}


@pytest.mark.slow
@pytest.mark.parametrize("small", [0, 1 << 20])
def test_a_slice_on_s3_is_compacted(place: Place, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With logs that are read at once, and with logs that are read piece by piece."""
    monkeypatch.setattr(pinned_slice, "_SMALL_BYTES", small)
    [done] = place.open().compact().finished
    assert (done.rows, done.inserts, done.updates, done.deletes) == (6, 1, 1, 1)
    assert place.notes() == WANTED
    assert len(place.base_files()) == 2


def test_a_minor_compaction_has_the_store_copy_the_base_file(place: Place) -> None:
    table = place.open()
    table.configure({**MINOR, "hoodie.compact.inline.max.delta.commits": "2"})
    operation = only_minor(minor_compact(table))
    assert place.notes() == WANTED
    assert operation.base is not None
    stored = [table._store.get(path).to_pybytes() for path in (operation.at(operation.base.name), operation.path)]
    assert stored[0] == stored[1]


def test_a_base_file_is_created_where_only_the_environment_says_how_to_reach_s3(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above all AWS_ALLOW_HTTP: the client that has more time for an upload must not forget it."""
    for name, value in place.endpoint.options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    [done] = hudi.open_table(place.url).compact().finished
    assert done.rows == 6
    assert place.notes() == WANTED


def test_an_upload_whose_answer_is_lost_is_found_and_not_sent_again(place: Place) -> None:
    table = place.open()
    place.proxy.arm("PUT", Fault.DROP_ANSWER, path=BASE_FILE)
    [done] = table.compact().finished
    assert done.rows == 6
    assert place.notes() == WANTED
    assert len([seen for seen in place.proxy.seen if seen.startswith("PUT") and seen.endswith(".parquet")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, 503, 409])
def test_an_upload_that_did_not_arrive_can_be_tried_again(place: Place, fault: Fault | int) -> None:
    table = place.open()
    place.proxy.arm("PUT", fault, path=BASE_FILE)
    with pytest.raises(StoreUnavailableError):
        table.compact()
    assert place.notes() == WANTED
    assert len(place.base_files()) == 1
    assert len(table.compact().finished) == 1
    assert place.notes() == WANTED
    assert len(place.base_files()) == 2


def test_an_upload_that_is_refused_says_so(place: Place) -> None:
    table = place.open()
    place.proxy.arm("PUT", 403, 403, 403, path=BASE_FILE)
    with pytest.raises(StoreDeniedError, match="403"):
        table.compact()
    assert place.notes() == WANTED
    place.proxy.disarm()
    assert place.open().compact().finished
    assert place.notes() == WANTED
