"""The whole table on S3: no stages, lost answers, two writers, and what a rollback leaves under final names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.catalog import Catalog
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.tail import read_state
from headgate_tables.errors import DeposedError, TableExistsError, TableOwnedError, UnsafeStoreError
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.place import place as place_rows
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.oracle import Oracle
from support.s3 import S3Endpoint, real_s3, s3rver_s3
from support.splitting import split
from support.systems import SetClock, system
from support.tables import SCHEMA, as_text, by_hudi_rs, keys, rows

ODD_PARTITIONS = [
    "a/b",
    "50%",
    "naïve-日本-😀",
    "plus+and&amp;",
    "q?x#y",
    "x=y",
    "with space",
    "..dots..",
    "back\\slash",
    "default",
]
FILES = [r"\.requested$", r"\.inflight$", r"\.parquet$", r"\.log\.1", "/slot/", "partition_metadata$", r"_\d{17}\.deltacommit$"]
LOST = [(path, fault) for path in FILES for fault in (Fault.DROP_ANSWER, Fault.DROP_REQUEST)]
UNDECIDED = [(path, status) for path in ("/slot/", r"\.parquet$") for status in (409, 503)]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    with real_s3(tmp_path_factory.mktemp("s3")) as endpoint:
        yield endpoint


@dataclass(frozen=True)
class Place:
    """A fresh bucket, reached straight, or through the proxy by ``lossy`` handles."""

    bucket: str
    endpoint: S3Endpoint
    proxy: FaultyProxy

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/some/table"

    def create(self, *, ordering: str | None = "ts", buckets: int = 2) -> hudi.Table:
        options = self.endpoint.options
        return hudi.create_table(
            self.url, SCHEMA, record_key="id", partition_by="part", ordering=ordering, buckets=buckets, storage_options=options
        )

    def open(self, **options: Any) -> hudi.Table:
        return hudi.open_table(self.url, storage_options=self.endpoint.options, **options)

    def open_lossy(self, **options: Any) -> hudi.Table:
        through = {**self.endpoint.options, "endpoint": self.proxy.url, "timeout": "1s"}
        return hudi.open_table(self.url, storage_options=through, **options)

    def keys(self, part: str = "") -> list[str]:
        return sorted(key.removeprefix("some/table/") for key in self.endpoint.keys(self.bucket) if part in key)

    def slots(self, kind: SlotKind) -> list[Slot]:
        store = open_store(self.url, self.endpoint.options, SystemIds())
        return [slot for slot in read_state(store, LOG_LAYOUT, folds=False)[1] if slot.kind is kind]

    def found(self) -> dict[str, str]:
        """id to note by a new handle and by hudi-rs, which must agree; verify() has nothing to say."""
        table = self.open()
        verification = table.verify()
        assert verification.ok, verification.findings
        ours = table.scan().to_table().to_pylist()
        theirs = by_hudi_rs(self.url, self.endpoint.hudi_rs_options)
        assert as_text(ours) == as_text([{name: row[name] for name in SCHEMA.names} for row in theirs])
        found = {row["id"]: row["note"] for row in ours}
        assert len(found) == len(ours), "a key is there twice"
        return found


@pytest.fixture
def place(s3: S3Endpoint) -> Iterator[Place]:
    bucket = f"bucket-{SystemIds().token()}"
    s3.make_bucket(bucket)
    with faulty_proxy(s3.url) as proxy:
        yield Place(bucket, s3, proxy)


@pytest.mark.slow
def test_upserts_and_deletes_in_odd_partitions_are_read_by_us_and_by_hudi_rs(place: Place) -> None:
    table, oracle = place.create(), Oracle(["id"], ["part"], "ts")
    for number in range(6):
        entries = [
            {"id": f"k{(number + n) % 7}", "part": part, "ts": 10 + number - 4 * (n == 2), "note": str(number)}
            for part in ODD_PARTITIONS
            for n in range(4)
        ]
        if number % 3 == 2:
            oracle.delete(entries)
            table.delete(pa.Table.from_pylist(entries, SCHEMA))
        else:
            oracle.upsert(entries)
            table.upsert(pa.Table.from_pylist(entries, SCHEMA))
    expected = as_text(oracle.rows())
    assert as_text(table.scan().to_table().to_pylist()) == expected
    assert as_text(place.open().scan().to_table().to_pylist()) == expected
    theirs = by_hudi_rs(place.url, place.endpoint.hudi_rs_options)
    assert as_text([{name: row[name] for name in SCHEMA.names} for row in theirs]) == expected
    assert table.verify().ok
    one = place.open().scan(partitions=[{"part": "a/b"}]).to_table()
    assert {row["part"] for row in one.to_pylist()} == {"a/b"}


@pytest.mark.slow
def test_of_two_handles_one_is_deposed_and_nothing_is_lost(place: Place) -> None:
    first = place.create()
    second = place.open()
    first.upsert(rows(("a", 1, "first")))
    second.upsert(rows(("b", 1, "second")))
    with pytest.raises(DeposedError, match="took the table over"):
        first.upsert(rows(("c", 1, "first")))
    second.upsert(rows(("d", 1, "second")))
    assert place.found() == {"a": "first", "b": "second", "d": "second"}
    assert first.scan().to_table().num_rows == 3


def test_d1_files_of_a_rollback_are_named_in_a_dead_slot_before_they_are_deleted(place: Place) -> None:
    place.create(buckets=4)
    table = place.open_lossy()
    table.upsert(rows(("a", 1, "x")))
    transaction = table.transaction()
    transaction.upsert(rows(*((f"k{number}", 1, "x") for number in range(20))))
    transaction.delete(keys(("a", 2)))
    left = place.keys(transaction.instant)
    assert len([key for key in left if key.startswith("p/")]) >= 5
    transaction.rollback()
    place.proxy.seen.clear()
    table.upsert(rows(("b", 1, "x")))
    assert place.keys(transaction.instant) == []
    [dead] = place.slots(SlotKind.DEAD)
    assert sorted(dead.body.named[transaction.instant]) == left
    named_at = next(
        at for at, request in enumerate(place.proxy.seen) if request.startswith("PUT") and f"/slot/{dead.n:020}" in request
    )
    deleted_at = [at for at, request in enumerate(place.proxy.seen) if request.startswith("POST") and "delete" in request]
    assert deleted_at
    assert named_at < min(deleted_at)
    assert place.found() == {"a": "x", "b": "x"}


@pytest.mark.slow
def test_w3_the_next_writer_sweeps_what_a_crash_before_the_slot_left(place: Place) -> None:
    place.create()
    place.open().upsert(rows(("a", 1, "x")))
    crashed = place.open().transaction()
    crashed.upsert(rows(("a", 2, "dead"), ("b", 2, "dead")))
    crashed.delete(keys(("a", 3)))
    assert place.found() == {"a": "x"}
    assert [key for key in place.keys(crashed.instant) if key.startswith("p/")]
    place.open().upsert(rows(("c", 1, "x")))
    assert place.keys(crashed.instant) == []
    assert place.found() == {"a": "x", "c": "x"}


@pytest.mark.slow
def test_t6_the_next_writer_publishes_what_a_crash_after_the_slot_left(place: Place) -> None:
    place.create()
    table = place.open_lossy()
    table.upsert(rows(("a", 1, "x")))
    transaction = table.transaction()
    transaction.upsert(rows(("a", 2, "won"), ("b", 1, "won")))
    place.proxy.arm("PUT", Fault.DROP_REQUEST, path=f"/{transaction.instant}_")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate_tables.system.SystemClock.sleep", killed)  # at the first repeat
        with pytest.raises(KeyboardInterrupt, match="killed"):
            transaction.commit()
    assert len(place.open().commits()) == 1
    place.open().upsert(rows(("c", 1, "x")))
    assert place.found() == {"a": "won", "b": "won", "c": "x"}


def killed(*arguments: object) -> None:
    raise KeyboardInterrupt("killed")


@pytest.mark.slow
@pytest.mark.parametrize(("path", "fault"), [*LOST, *UNDECIDED])
def test_c4_a_lost_answer_or_request_changes_nothing(place: Place, path: str, fault: Fault | int) -> None:
    place.create(buckets=1)
    table = place.open_lossy()
    table.upsert(rows(("a", 1, "first")))
    place.proxy.arm("PUT", fault, fault, path=path)
    result = table.upsert(pa.concat_tables([rows(("a", 2, "second")), rows(("b", 1, "second"), part="new")]))
    assert not place.proxy.is_armed, f"{path} was not created twice"
    assert [commit.instant for commit in place.open().commits()][1:] == [result.instant]
    assert len(place.slots(SlotKind.COMMIT)) == 2
    assert len([name for name, time in list_data_files(table._store) if time == result.instant]) == result.files == 2
    assert table.upsert(rows(("c", 1, "third"))).instant > result.instant
    assert place.found() == {"a": "second", "b": "second", "c": "third"}


@pytest.mark.slow
def test_c4_a_slot_that_never_arrived_is_lost_to_who_took_its_number_meanwhile(place: Place) -> None:
    place.create()
    clock = SetClock()
    table = place.open_lossy(system=system(clock))
    table.upsert(rows(("a", 1, "first")))
    transaction = table.transaction()
    transaction.upsert(rows(("a", 2, "late"), ("b", 2, "late")))
    place.proxy.arm("PUT", Fault.DROP_REQUEST, path="/slot/")
    between(clock, lambda: place.open(system=system(clock)).upsert(rows(("c", 1, "other"))))
    with pytest.raises(DeposedError, match="took the table over"):
        transaction.commit()
    assert place.found() == {"a": "first", "c": "other"}
    place.open(system=system(clock)).upsert(rows(("d", 1, "next")))
    assert place.keys(transaction.instant) == []
    assert place.found() == {"a": "first", "c": "other", "d": "next"}


def test_c4_a_slot_whose_answer_was_lost_is_ours_though_another_fenced_meanwhile(place: Place) -> None:
    place.create()
    clock = SetClock()
    table = place.open_lossy(system=system(clock))
    table.upsert(rows(("a", 1, "first")))
    place.proxy.arm("PUT", Fault.DROP_ANSWER, path="/slot/")
    between(clock, lambda: place.open(system=system(clock)).upsert(rows(("c", 1, "other"))))
    assert table.upsert(rows(("a", 2, "second"))).completion
    assert place.found() == {"a": "second", "c": "other"}
    with pytest.raises(DeposedError, match="took the table over"):
        table.upsert(rows(("a", 3, "third")))


def between(clock: SetClock, work: Callable[[], object]) -> None:
    """Does ``work`` in the first pause before a repeated request."""

    def sleep(seconds: float) -> None:
        clock.sleep = lambda seconds: None  # type: ignore[method-assign]
        work()

    clock.sleep = sleep  # type: ignore[method-assign]


def test_a_reader_sees_new_commits_and_no_uncommitted_row(place: Place) -> None:
    place.create()
    writer, reader = place.open(), place.open()
    for number in range(4):
        with writer.transaction() as transaction:
            transaction.upsert(rows((f"k{number}", 1, "x"), part=f"p{number % 2}"))
            assert reader.scan().to_table().num_rows == place.open().scan().to_table().num_rows == number
            assert len(by_hudi_rs(place.url, place.endpoint.hudi_rs_options)) == number
        assert reader.scan().to_table().num_rows == number + 1


def test_a_fold_stands_for_its_slots(place: Place) -> None:
    table = place.create()
    table.upsert(rows(("a", 1, "x")))
    assert table._opened.log is not None
    table._opened.log.fold()
    table.upsert(rows(("a", 2, "y")))
    place.open().upsert(rows(("b", 1, "y")))
    assert len(place.keys("/fold/")) == len(place.keys("/bound/")) == 1
    assert place.found() == {"a": "y", "b": "y"}


@pytest.mark.slow
def test_a_store_that_ignores_conditions_gets_no_table(tmp_path: Path) -> None:
    with s3rver_s3(tmp_path) as endpoint:
        url = endpoint.make_bucket("bucket") + "/table"
        with pytest.raises(UnsafeStoreError, match="ignores conditional writes"):
            hudi.create_table(url, SCHEMA, record_key="id", storage_options=endpoint.options)
        assert endpoint.keys("bucket") == []


def write_checkpoint(
    place: Place, table: hudi.Table, *entries: tuple[str, int, str | None], lossy: bool = False
) -> hudi.Transaction:
    """A checkpoint of the cluster: announced, written by a process with a store of its own; a note of None is a delete."""
    endpoint = {"endpoint": place.proxy.url, "timeout": "1s"} if lossy else {}
    store = open_store(place.url, {**place.endpoint.options, **endpoint}, SystemIds())
    assert table.definition is not None
    writer = ChangeWriter(store, table.definition, epoch=table.epoch, process="3" * 32, ordinal=0)
    deletes = pa.array([note is None for _, _, note in entries])
    data = rows(*((key, ts, note or "") for key, ts, note in entries))
    batch = split(place_rows(data, deletes, table.definition))
    transaction = table.transaction(tidy=False)
    transaction.announce()
    transaction.add(writer.write(transaction.instant, batch, [1] * len(batch), block_format="parquet"))
    return transaction


def test_checkpoints_offsets_and_an_abort_of_a_clusters_owner(place: Place) -> None:
    place.create()
    table = place.open(owner=hudi.OwnerProcess("cluster", "here", 1, "localhost:7070"))
    assert table.own() == 1
    table.win_offsets({"c": ChannelRecord(1, 0, "me", 1)})
    write_checkpoint(place, table, ("a", 1, "a"), ("b", 1, "b"), ("c", 1, "c")).commit(
        channels={"c": ChannelRecord(1, 3, "me", 2)}
    )
    aborted = write_checkpoint(place, table, ("a", 2, "aborted"), ("d", 2, "aborted"))
    left = place.keys(aborted.instant)
    assert [key for key in left if key.startswith("p/")]
    aborted.rollback()
    write_checkpoint(place, table, ("a", 3, None), ("b", 3, "b3")).commit()
    assert place.keys(aborted.instant) == left
    table.tidy()
    assert place.keys(aborted.instant) == []
    assert place.found() == {"b": "b3", "c": "c"}
    assert place.open().channels == {"c": ChannelRecord(1, 3, "me", 2)}
    with pytest.raises(TableOwnedError, match="localhost:7070"):
        place.open().upsert(rows(("x", 1, "x")))


@pytest.mark.parametrize("fault", [Fault.DROP_ANSWER, Fault.DROP_REQUEST])
def test_fi3_a_writer_repeats_a_file_of_unknown_outcome_under_its_name(place: Place, fault: Fault) -> None:
    table = place.create()
    table.own()
    place.proxy.arm("PUT", fault, path=r"\.log\.1")
    write_checkpoint(place, table, ("a", 1, "a"), lossy=True).commit()
    assert not place.proxy.is_armed
    assert place.found() == {"a": "a"}


def test_tables_of_a_bucket_are_found_by_name(place: Place) -> None:
    catalog = Catalog(f"s3://{place.bucket}/some", place.endpoint.options, system())
    assert catalog.names() == []
    made = place.create()
    for _ in range(2):
        catalog.add("orders", "table")
    with pytest.raises(TableExistsError):
        catalog.add("orders", "other")
    assert catalog.names() == ["orders"]
    assert catalog.entry("orders").url == made.url == place.url
