"""Log files of a writer, committed by an owner: read back by our reader and by hudi-rs, and against a dictionary."""

import hashlib
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, StoreFullError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.writing import Changes
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log.block import BlockKind, read_blocks
from headgate_tables.hudi.place import place
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.store import Buffers, Outcome
from headgate_tables.system import SystemIds
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.model import Change, Model
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows
from support.splitting import split
from support.strategies import Shape, effort, new_folder, shapes
from support.systems import system
from support.tables import by_hudi_rs, create, notes, rows

PROCESS = "5" * 32
Entry = tuple[str, int, str | None]
"""Key, ordering value, and the note of an upsert or None for a delete."""


def store_of(table: hudi.Table) -> LocalStore:
    return LocalStore(table.url.removeprefix("file://"), SystemIds())


def writer_of(table: hudi.Table, *, process: str = PROCESS, ordinal: int = 0, store: Any = None) -> ChangeWriter:
    assert table.definition is not None
    return ChangeWriter(store or store_of(table), table.definition, epoch=table.own(), process=process, ordinal=ordinal)


def changes_of(table: hudi.Table, *entries: Entry, part: str = "p") -> list[Changes]:
    data = rows(*((key, ts, note or "") for key, ts, note in entries), part=part)
    assert table.definition is not None
    return split(place(data, pa.array([note is None for _, _, note in entries], pa.bool_()), table.definition))


def write(
    writer: ChangeWriter, table: hudi.Table, flushes: Sequence[Sequence[Changes]], **options: Any
) -> tuple[hudi.Transaction, list[WriteStatus]]:
    """One transaction of several flushes, whose files it has and has not committed."""
    transaction = table.transaction()
    transaction.announce()
    versions: dict[tuple[str, int], int] = {}
    for changes in flushes:
        numbers = []
        for each in changes:
            versions[each.partition, each.bucket] = versions.get((each.partition, each.bucket), 0) + 1
            numbers.append(versions[each.partition, each.bucket])
        transaction.add(writer.write(transaction.instant, changes, numbers, block_format="parquet", **options))
    return transaction, transaction.statuses


@pytest.fixture(params=["ts", None], ids=["event time", "commit time"])
def ordering(request: pytest.FixtureRequest) -> Any:
    return request.param


IN_ORDER: list[list[Entry]] = [
    [("a", 5, "first"), ("a", 5, None)],
    [("a", 5, None), ("a", 5, "again")],
    [("a", 5, "first"), ("a", 5, None), ("a", 5, "again")],
    [("a", 5, None), ("a", 5, "again"), ("a", 5, None)],
    [("a", 5, "first"), ("b", 5, "b"), ("a", 5, "second")],
    [("a", 5, "new"), ("a", 3, "late"), ("b", 5, None), ("b", 3, "late")],
    [("a", 3, "old"), ("a", 5, None), ("a", 4, "late"), ("b", 5, "b"), ("b", 9, None), ("b", 9, "b9")],
]


@pytest.mark.parametrize(
    "entries", IN_ORDER, ids=lambda entries: " ".join(f"{k}{t}{'-' if n is None else '+'}" for k, t, n in entries)
)
@pytest.mark.parametrize("flushes", ["one flush", "a flush each"])
def test_the_order_of_arrival_holds_for_every_reader(
    tmp_path: Path, ordering: str | None, entries: list[Entry], flushes: str
) -> None:
    table = create(tmp_path, ordering=ordering, buckets=1)
    old = [("a", 1, "old"), ("b", 1, "old"), ("c", 1, "old")]
    writer = writer_of(table)
    write(writer, table, [changes_of(table, *old)])[0].commit()
    batches = [entries] if flushes == "one flush" else [[entry] for entry in entries]
    write(writer, table, [changes_of(table, *batch) for batch in batches])[0].commit()
    model = Model(["id"], ["part"], ordering)
    for key, ts, note in [*old, *entries]:
        given = {"id": key, "part": "p", "ts": ts, "note": note}
        model = model.after([Change("delete" if note is None else "upsert", [given])])
    assert notes(hudi.open_table(table.url)) == {row["id"]: row["note"] for row in model.rows()}
    assert table.verify().ok


def test_deletes_of_several_buckets_keep_their_own_ordering_values(tmp_path: Path) -> None:
    """Each of 40 keys is written, deleted and written again late; the next checkpoint's rows beat the deletes of every other
    key."""
    table = create(tmp_path, buckets=4)
    writer = writer_of(table)
    first = [(f"k{n}", 100 * n + at, note) for note, at in (("old", 0), (None, 10), ("late", 5)) for n in range(40)]
    write(writer, table, [changes_of(table, *first)])[0].commit()
    assert notes(table) == {}
    second = [(f"k{n}", 100 * n + 10 - n % 2, "back") for n in range(40)]
    write(writer, table, [changes_of(table, *second)])[0].commit()
    assert notes(table) == {f"k{n}": "back" for n in range(0, 40, 2)}


def test_a_tie_is_decided_across_flushes_too(tmp_path: Path, ordering: str | None) -> None:
    """hudi-rs gets 12 files of one instant, so that neither their names nor the text of row numbers sort as they came."""
    table = create(tmp_path, ordering=ordering, buckets=1)
    flushes = [changes_of(table, ("a", 5, f"flush {number}"), (f"k{number}", 5, "")) for number in range(12)]
    write(writer_of(table), table, flushes)[0].commit()
    assert notes(table)["a"] == "flush 11"


def test_deletes_alone_and_upserts_alone_make_one_block(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    writer = writer_of(table)
    alone = [("a", 1, "a"), ("b", 1, "b")], [("a", 2, None), ("b", 2, None)]
    for entries, kind in zip(alone, (BlockKind.PARQUET_DATA, BlockKind.DELETE), strict=True):
        transaction, [status] = write(writer, table, [changes_of(table, *entries)])
        content = store_of(table).get(status.file.stage)
        assert [block.kind for block in read_blocks(content, "f")] == [kind]
        transaction.commit()
    assert notes(table) == {}


def test_only_a_key_that_changes_between_upserts_and_deletes_makes_more_than_two_blocks(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    entries: list[Entry] = [("a", 1, "a"), ("b", 1, "b"), ("a", 2, None), ("a", 3, "a3"), ("b", 2, None), ("c", 1, None)]
    data, deletes = BlockKind.PARQUET_DATA, BlockKind.DELETE
    transaction, [status] = write(writer_of(table), table, [changes_of(table, *entries)])
    assert [block.kind for block in read_blocks(store_of(table).get(status.file.stage), "f")] == [data, deletes, data]
    transaction.rollback()


def test_rows_and_deletes_of_many_keys_in_turns_make_two_blocks_and_keep_the_order_of_arrival(tmp_path: Path) -> None:
    """A block each was 9,700 blocks and 60 times the bytes for 40,000 rows: a flush took thirty times longer (issue 10)."""
    table = create(tmp_path, ordering=None, buckets=1)
    entries: list[Entry] = []
    for n in range(100):
        entries += [(f"k{n}", 1, f"first {n}"), (f"k{n}", 1, f"second {n}"), (f"gone{n}", 1, None)]
    transaction, [status] = write(writer_of(table), table, [changes_of(table, *entries)])
    assert (status.stat.rows, status.stat.deletes) == (200, 100)
    blocks = list(read_blocks(store_of(table).get(status.file.stage), "f"))
    assert [block.kind for block in blocks] == [BlockKind.PARQUET_DATA, BlockKind.DELETE]
    written = pq.read_table(pa.BufferReader(blocks[0].content))["note"].to_pylist()
    assert written == [note for _, _, note in entries if note is not None]
    transaction.commit()
    assert notes(table) == {f"k{n}": f"second {n}" for n in range(100)}


def test_the_same_key_in_two_partitions_is_two_records(tmp_path: Path) -> None:
    """Rule DE4."""
    table = create(tmp_path, buckets=1)
    both = [*changes_of(table, ("a", 1, "p")), *changes_of(table, ("a", 1, "q"), part="q")]
    write(writer_of(table), table, [both])[0].commit()
    assert sorted(row["note"] for row in by_hudi_rs(table.url)) == ["p", "q"]


def test_changes_in_many_small_pieces_are_one_file(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    pieces = [changes_of(table, (f"k{n % 7}", n, None if n % 5 == 4 else f"note {n}"))[0] for n in range(40)]
    whole = Changes(
        "p",
        0,
        pa.concat_tables([piece.rows for piece in pieces]),
        pa.chunked_array([piece.keys for piece in pieces]),
        pa.chunked_array([piece.deletes for piece in pieces]),
    )
    transaction, [status] = write(writer_of(table), table, [[whole]])
    assert (status.stat.rows, status.stat.deletes) == (32, 8)
    transaction.commit()
    assert notes(table) == {f"k{n % 7}": f"note {n}" for n in range(33, 40) if n % 5 != 4}


def test_a_status_says_what_lies_in_the_stage_of_the_process(tmp_path: Path) -> None:
    table = create(tmp_path)
    transaction, statuses = write(writer_of(table), table, [changes_of(table, *((f"k{n}", 1, "n") for n in range(20)))])
    assert [status.stat.log_version for status in statuses] == [1, 1]
    for status in statuses:
        content = store_of(table).get(status.file.stage).to_pybytes()
        assert status.file.stage.startswith(f".hoodie/.headgate/stage/{table.epoch}/{PROCESS}/{transaction.instant}_")
        assert (status.file.size, status.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert status.file.path == f"p/{status.stat.name}"
        assert store_of(table).size(status.file.path) is None, "nothing is shown before the commit"
    transaction.commit()
    assert table.verify().ok


def test_sequence_numbers_are_unique_in_an_instant(tmp_path: Path) -> None:
    table = create(tmp_path)
    transaction = table.transaction()
    transaction.announce()
    for process, own, other in (("a", 7, 0), ("b", 1, None)):  # a checkpoint may give a process another number than its own
        writer = writer_of(table, process=process * 32, ordinal=own)
        for part, version in (("p", 1), ("q", 1), ("p", 2)):
            entries: list[Entry] = [(f"k{n % 4}", version, None if n % 3 == 2 else process) for n in range(30)]
            chosen = changes_of(table, *entries, part=f"{part}{process}")
            transaction.add(
                writer.write(transaction.instant, chosen, [version] * len(chosen), ordinal=other, block_format="parquet")
            )
    transaction.commit()
    files = [store_of(table).get(status.file.path) for status in transaction.statuses]
    blocks = [block for file in files for block in read_blocks(file, "f") if block.kind is BlockKind.PARQUET_DATA]
    found = [
        number for block in blocks for number in pq.read_table(pa.BufferReader(block.content))["_hoodie_commit_seqno"].to_pylist()
    ]
    assert len(blocks) > 2 * len(files), "rows of one file are in several blocks"
    assert len(found) == len(set(found)) == 2 * 3 * 20
    assert {number.split("_")[0] for number in found} == {transaction.instant}
    assert {number.split("_")[1] for number in found} == {"0", "1"}


def test_two_threads_write_what_one_writes(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=4)
    many = changes_of(table, *((f"k{n % 20_000}", n, f"note {n}") for n in range(25_000)))
    found = []
    for threads in (1, 2):
        transaction, statuses = write(writer_of(table), table, [many], threads=threads)
        found.append([(status.stat.file_id, status.stat.rows, status.stat.deletes) for status in statuses])
        transaction.commit()
    assert found[0] == found[1]
    assert sum(count for _, count, _ in found[0]) == 25_000
    assert table.scan(["id"]).to_table().num_rows == 20_000


def test_two_writers_of_one_checkpoint_write_at_once(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=2)
    transaction = table.transaction()
    transaction.announce()
    both = changes_of(table, *((f"k{n}", n, f"note {n}") for n in range(500)))
    start = threading.Barrier(2)

    def one(number: int) -> list[WriteStatus]:
        writer = writer_of(table, process=f"{number}" * 32, ordinal=number)
        start.wait()
        return writer.write(transaction.instant, [both[number]], [1], block_format="parquet")

    with ThreadPoolExecutor(2) as pool:
        for statuses in pool.map(one, range(2)):
            transaction.add(statuses)
    transaction.commit()
    assert len(notes(table)) == 500
    assert table.verify().ok


def test_empty_changes_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    [changes] = changes_of(table, ("a", 1, "a"))
    empty = Changes("p", 0, changes.rows.slice(1), changes.keys.slice(1), changes.deletes.slice(1))
    transaction = table.transaction()
    transaction.announce()
    with pytest.raises(ValueError, match="2 log versions for 2 changes, or some of these are empty"):
        writer_of(table).write(transaction.instant, [changes, empty], [1, 2], block_format="parquet")
    with pytest.raises(ValueError, match="0 log versions for 1 changes"):
        writer_of(table).write(transaction.instant, [changes], [], block_format="parquet")
    assert writer_of(table).write(transaction.instant, [], [], block_format="parquet") == []


def test_a_base_file_is_one_whose_log_version_is_zero_and_takes_no_deletes(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    transaction = table.transaction()
    transaction.announce()
    writer = writer_of(table)
    with pytest.raises(ValueError, match="deletes for the base file"):
        writer.write(transaction.instant, changes_of(table, ("a", 1, "a"), ("b", 1, None)), [0], block_format="parquet")
    [changes] = changes_of(table, ("a", 1, "a"), ("b", 1, "b"))
    file_id = "00000000-0000-4000-8000-000000000000-0"
    [status] = writer.write(transaction.instant, [changes], [0], file_ids=[file_id], block_format="parquet")
    assert status.stat.name == f"{file_id}_0-0-0_{transaction.instant}.parquet"
    written = pq.read_table(pa.BufferReader(store_of(table).get(status.file.stage)))
    assert set(written["_hoodie_file_name"].to_pylist()) == {status.stat.name}
    assert written["note"].to_pylist() == ["a", "b"]


def test_a_transaction_writes_into_the_file_group_that_is_there_whatever_its_id(tmp_path: Path) -> None:
    """The table's definition does not name this id, so a writer that is not told would begin a second group."""
    table = create(tmp_path, buckets=1)
    file_id = "00000000-0000-4000-8000-000000000000-0"
    transaction = table.transaction()
    transaction.announce()
    made = changes_of(table, ("a", 1, "a"), ("b", 1, "b"))
    transaction.add(writer_of(table).write(transaction.instant, made, [0], file_ids=[file_id], block_format="parquet"))
    transaction.commit()
    table.close()
    with hudi.open_table(table.url) as again:
        again.upsert(rows(("a", 2, "newer")))
        assert [group.file_id for group in again.file_groups()] == [file_id]
        assert notes(again) == {"a": "newer", "b": "b"}


def test_files_of_a_failed_write_do_not_stay_in_the_stage(tmp_path: Path) -> None:
    class FullAtTheSecond(LocalStore):
        def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
            super().stage(files[:1])
            raise StoreFullError("full", fix="Make room.")

    table = create(tmp_path)
    store = FullAtTheSecond(str(tmp_path / "table"), SystemIds())
    with pytest.raises(StoreFullError):
        write(writer_of(table, store=store), table, [changes_of(table, *((f"k{n}", 1, "n") for n in range(20)))])
    assert store.list_folder(f".hoodie/.headgate/stage/{table.epoch}/{PROCESS}").files == []


# --- without a stage, as on an object store ---


def in_place(tmp_path: Path) -> tuple[hudi.Table, InPlaceStore]:
    create(tmp_path, system=system())
    store = InPlaceStore(tmp_path / "table", SystemIds())
    return open_on(store, system()), store


def test_w3_files_are_created_under_their_final_names(tmp_path: Path) -> None:
    table, store = in_place(tmp_path)
    transaction, statuses = write(writer_of(table, store=store), table, [changes_of(table, ("a", 1, "a"), ("b", 1, "b"))])
    for status in statuses:
        assert status.file.stage == ""
        assert store.size(status.file.path) == status.file.size
    assert notes(hudi.open_table(table.url)) == {}
    transaction.commit()
    assert notes(hudi.open_table(table.url)) == {"a": "a", "b": "b"}


def test_c4_a_file_of_unknown_outcome_is_sent_again_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, store = in_place(tmp_path)
    writer = writer_of(table, store=store)
    lost = [2]
    real = store.create_all

    def create_all(files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        lost[0] -= 1
        return [Outcome.UNKNOWN for _ in files] if lost[0] >= 0 else real(files, durable=durable)

    monkeypatch.setattr(store, "create_all", create_all)
    transaction, statuses = write(writer, table, [changes_of(table, ("a", 1, "a"), ("b", 1, "b"))])
    assert [store.size(status.file.path) for status in statuses] == [status.file.size for status in statuses]
    transaction.commit()
    assert notes(hudi.open_table(table.url)) == {"a": "a", "b": "b"}


def test_fi3_a_name_that_holds_other_bytes_ends_the_checkpoint(tmp_path: Path) -> None:
    table, store = in_place(tmp_path)
    writer = writer_of(table, store=store)
    transaction, _ = write(writer, table, [changes_of(table, ("a", 1, "a"))])
    with pytest.raises(CorruptFileError, match="taken by other bytes"):
        writer.write(transaction.instant, changes_of(table, ("a", 1, "other")), [1], block_format="parquet")


# --- random ---

Batch = tuple[list[tuple[bool, dict[str, Any]]], bool]
"""Rows as given, each with whether it is a delete; and whether a flush comes behind it."""


def batches_on(shape: Shape) -> st.SearchStrategy[list[list[Batch]]]:
    one = st.booleans().flatmap(lambda deleted: st.tuples(st.just(deleted), shape.identities() if deleted else shape.rows()))
    alike = st.booleans().flatmap(
        lambda deleted: st.lists(
            st.tuples(st.just(deleted), shape.identities() if deleted else shape.rows()), min_size=1, max_size=5
        )
    )
    batch = st.tuples(alike | st.lists(one, min_size=1, max_size=8), st.booleans())
    return st.lists(st.lists(batch, min_size=1, max_size=4), min_size=1, max_size=3)


def placed(shape: Shape, table: hudi.Table, batch: Batch) -> list[Changes]:
    entries, _ = batch
    names = list(shape.columns)
    schema = pa.schema([field.with_nullable(True) for field in shape.given_schema])
    data = pa.Table.from_pylist([{name: row.get(name) for name in names} for _, row in entries], schema)
    assert table.definition is not None
    return split(place(data, pa.array([deleted for deleted, _ in entries]), table.definition))


def together(changes: Sequence[Changes]) -> list[Changes]:
    """One for each bucket, as a writer's buffers gather them."""
    found: dict[tuple[str, int], list[Changes]] = {}
    for each in changes:
        found.setdefault((each.partition, each.bucket), []).append(each)
    return [
        Changes(
            *bucket,
            pa.concat_tables([each.rows for each in pieces]),
            pa.chunked_array([each.keys for each in pieces]),
            pa.chunked_array([each.deletes for each in pieces]),
        )
        for bucket, pieces in found.items()
    ]


@pytest.mark.slow
@effort(60)
@given(data=st.data(), shape=shapes(), store_kind=st.sampled_from([FailingStore, InPlaceStore]))
def test_checkpoints_of_any_table_hold_what_a_dictionary_says(
    data: st.DataObject, shape: Shape, store_kind: type[FailingStore]
) -> None:
    """Fact HF6: hudi-rs reads groups of logs alone."""
    with new_folder() as folder:
        path = Path(folder) / "table"
        hudi.create_table(str(path), **shape.definition())
        store = store_kind(path, SystemIds())
        table = open_on(store, system())
        writer = writer_of(table, store=store)
        model = Model(shape.record_key, shape.partition_by, shape.ordering)
        for batches in data.draw(batches_on(shape)):
            ends = [number for number, (_, flushed) in enumerate(batches) if flushed and number + 1 < len(batches)]
            bounds = [0, *(end + 1 for end in ends), len(batches)]
            flushes = [
                together([changes for batch in batches[start:stop] for changes in placed(shape, table, batch)])
                for start, stop in itertools.pairwise(bounds)
            ]
            write(writer, table, flushes)[0].commit()
            for deleted, row in (entry for entries, _ in batches for entry in entries):
                model = model.after([Change("delete" if deleted else "upsert", [shape.stored(row)])])
        expected = shape.expected(model.rows())
        assert_same_rows(hudi.open_table(str(path)).scan().to_table(), expected, "our reader")
        assert_same_rows(without_meta(read_by_hudi_rs(path)), expected, "hudi-rs")
        assert table.verify().ok
