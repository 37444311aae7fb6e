"""One operation of a compaction: what it merges, what it leaves behind, and what it does not accept."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, DeposedError, MissingFileError, OperatorNeeded
from headgate_tables.face.operation import Operation
from headgate_tables.hudi.services.compaction import pinned_slice
from support.damage import flip
from support.slices import LATER, STAGE, compact, only_operation, operation_of, place, staged_files, stored
from support.tables import create, keys, notes, rows


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    """A base file of a to j; logs of rows (b new, c late, z fresh, i a tie), of deletes (d, e late), of rows (z again)."""
    made = create(tmp_path, buckets=1)
    made.upsert(rows(*((letter, 10, f"base {letter}") for letter in "abcdefghij")))
    made.upsert(rows(("b", 11, "newer"), ("c", 9, "late"), ("z", 1, "fresh"), ("i", 10, "a tie")))
    made.delete(keys(("d", 11), ("e", 9)))
    made.upsert(rows(("z", 2, "fresher")))
    return made


def notes_in(table: hudi.Table, operation: Operation) -> list[tuple[str, str]]:
    return [(row["id"], row["note"]) for row in stored(table, operation).to_pylist()]


def test_kept_rows_come_in_the_base_files_order_and_then_the_logs_winners_in_theirs(table: hudi.Table) -> None:
    operation = only_operation(table)
    done = compact(table, operation)
    assert notes_in(table, operation) == [
        *((letter, f"base {letter}") for letter in "acefghj"),
        ("b", "newer"),
        ("i", "a tie"),
        ("z", "fresher"),
    ]
    assert (done.rows, done.inserts, done.updates, done.deletes) == (10, 1, 2, 1)
    assert (done.log_rows, done.log_blocks) == (5, 3)


def test_every_row_keeps_its_own_meta_columns_but_the_file_name_which_becomes_the_new_files(table: hudi.Table) -> None:
    before = {row["id"]: row for row in table.scan(meta_columns=True).to_table().to_pylist()}
    operation = only_operation(table)
    compact(table, operation)
    found = stored(table, operation).to_pylist()
    assert {row["_hoodie_file_name"] for row in found} == {operation.output}
    assert {row["id"]: row | {"_hoodie_file_name": before[row["id"]]["_hoodie_file_name"]} for row in found} == before


def test_the_footer_holds_what_hudi_puts_there(table: hudi.Table) -> None:
    operation = only_operation(table)
    compact(table, operation)
    footer = pq.read_metadata(place(table) / operation.path).metadata
    assert footer[b"hoodie_min_record_key"] == b"a"
    assert footer[b"hoodie_max_record_key"] == b"z"
    assert footer[b"writer.model.name"] == b"avro"
    first = pq.read_metadata(place(table) / operation.at(operation.base.name if operation.base else "")).metadata
    assert footer[b"parquet.avro.schema"] == first[b"parquet.avro.schema"]
    assert b"org.apache.hudi.bloomfilter" not in footer


def test_statistics_stand_on_the_key_and_the_ordering(table: hudi.Table) -> None:
    operation = only_operation(table)
    compact(table, operation)
    group = pq.read_metadata(place(table) / operation.path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {c.path_in_schema for c in columns if c.statistics is not None} == {"_hoodie_record_key", "id", "ts"}


def test_size_and_checksum_are_those_of_the_stored_file(table: hudi.Table) -> None:
    operation = only_operation(table)
    done = compact(table, operation)
    content = (place(table) / operation.path).read_bytes()
    assert (done.file.path, done.file.stage) == (operation.path, "")
    assert (done.file.size, done.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_same_inputs_give_the_same_bytes(table: hudi.Table) -> None:
    operation = only_operation(table)
    contents = []
    for attempt in ("first", "second"):
        compact(table, operation, attempt=attempt, bloom=True)
        contents.append((place(table) / operation.path).read_bytes())
        (place(table) / operation.path).unlink()
    assert contents[0] == contents[1]


def test_a_finished_operation_is_recognised_by_its_file_alone(table: hudi.Table) -> None:
    """A report was lost, and the plan's inputs are cleaned already: nothing but the output is read (rules W4, FI5)."""
    operation = only_operation(table)
    done = compact(table, operation)
    for log in operation.logs:
        (place(table) / operation.at(log.name)).unlink()
    assert compact(table, operation) == done


def test_the_second_attempt_reports_the_file_of_the_first(table: hudi.Table) -> None:
    """The other attempt creates it while this one merges; this one's own bytes are thrown away."""
    operation = only_operation(table)
    done = []

    def another(_: int) -> None:
        if not done:
            done.append(compact(table, operation, attempt="quick", bloom=True))

    assert compact(table, operation, attempt="slow", progress=another) == done[0]
    assert b"org.apache.hudi.bloomfilter" in pq.read_metadata(place(table) / operation.path).metadata
    assert staged_files(table) == []


def test_a_name_that_another_program_took_is_refused(table: hudi.Table) -> None:
    operation = only_operation(table)
    base = operation.base
    assert base is not None
    shutil.copy(place(table) / operation.at(base.name), place(table) / operation.path)
    with pytest.raises(CorruptFileError, match="not the output of a compaction"):
        compact(table, operation)


def test_a_name_that_holds_the_output_of_other_inputs_is_refused(table: hudi.Table) -> None:
    operation = only_operation(table)
    compact(table, operation)
    table.upsert(rows(("a", 99, "more")))
    with pytest.raises(CorruptFileError, match="another operation"):
        compact(table, only_operation(table))


def test_a_slice_without_a_base_file_becomes_one(tmp_path: Path) -> None:
    table = create(tmp_path, buckets=1)
    table.upsert(rows(("a", 1, "base")))
    table.upsert(rows(("b", 1, "log"), ("a", 2, "newer")))
    table.delete(keys(("a", 3)))
    [part] = table.scan().slices()
    operation = operation_of(table, part)
    alone = Operation(operation.partition, operation.file_id, None, operation.logs, operation.output)
    done = compact(table, alone)
    assert notes_in(table, alone) == [("b", "log")]
    assert (done.rows, done.inserts, done.updates, done.deletes) == (1, 1, 0, 0)


def test_a_slice_of_which_nothing_is_left_becomes_a_base_file_without_rows(table: hudi.Table) -> None:
    table.delete(keys(*((letter, 99) for letter in "abcdefghijz")))
    operation = only_operation(table)
    done = compact(table, operation)
    assert done.rows == 0
    assert done.deletes == 10
    content = pq.ParquetFile(place(table) / operation.path)
    assert content.metadata.num_rows == 0
    assert content.schema_arrow.names[5:] == ["id", "part", "ts", "note"]
    assert compact(table, operation) == done


def test_all_readers_see_the_same_rows_of_a_compacted_table_also_when_nothing_is_left(table: hudi.Table) -> None:
    """Rule DE2: a base file remembers no delete, so an older row that comes late is visible again."""
    wanted = notes(table)
    table.compact()
    assert notes(table) == wanted
    table.delete(keys(*((letter, 99) for letter in "abcdefghijz")))
    table.compact()
    assert notes(table) == {}
    table.upsert(rows(("a", 100, "again")))
    assert notes(table) == {"a": "again"}
    table.upsert(rows(("b", 1, "older than its delete")))
    assert notes(table) == {"a": "again", "b": "older than its delete"}


# --- inputs that are not as they were pinned ---


def names_of_all(operation: Operation) -> Iterator[str]:
    base = operation.base
    assert base is not None
    yield base.name
    yield from (log.name for log in operation.logs)


def assert_nothing_left(table: hudi.Table, operation: Operation) -> None:
    assert not (place(table) / operation.path).exists()
    assert staged_files(table) == []


@pytest.mark.parametrize("which", range(4))
def test_a_missing_input_is_named_before_anything_is_written(table: hudi.Table, which: int) -> None:
    operation = only_operation(table)
    name = list(names_of_all(operation))[which]
    (place(table) / operation.at(name)).unlink()
    with pytest.raises(MissingFileError, match=name):
        compact(table, operation)
    assert_nothing_left(table, operation)


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + b"\0"])
def test_an_input_of_another_size_is_named_before_anything_is_written(
    table: hudi.Table, which: int, change: Callable[[bytes], bytes]
) -> None:
    operation = only_operation(table)
    name = list(names_of_all(operation))[which]
    file = place(table) / operation.at(name)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(CorruptFileError, match=name):
        compact(table, operation)
    assert_nothing_left(table, operation)


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("which", range(4))
def test_no_flipped_bit_of_an_input_gets_into_the_output_unseen(
    table: hudi.Table, which: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs held whole or read piece by piece. A flip that nothing shows may only be one that changes no row."""
    if not held:
        monkeypatch.setattr(pinned_slice, "_SMALL_BYTES", 0)
    operation = only_operation(table)
    compact(table, operation)
    wanted = stored(table, operation)
    (place(table) / operation.path).unlink()
    file = place(table) / operation.at(list(names_of_all(operation))[which])
    content = file.read_bytes()
    for at in range(which, len(content), len(content) // 60):
        file.write_bytes(flip(content, at, at % 8))
        try:
            compact(table, operation)
        except OperatorNeeded:
            assert_nothing_left(table, operation)
        else:
            # Delete blocks have no checksum in Hudi's format.
            assert which == 2 or stored(table, operation).equals(wanted), at
            (place(table) / operation.path).unlink()


# --- cancelled, deposed ---


class CancelledError(Exception):
    """What a heartbeat raises."""


@pytest.mark.parametrize("call", range(6))
def test_a_cancelled_operation_leaves_nothing(table: hudi.Table, call: int) -> None:
    operation = only_operation(table)
    calls: list[int] = []

    def cancel(done: int) -> None:
        if len(calls) == call:
            raise CancelledError
        calls.append(done)

    with pytest.raises(CancelledError):
        compact(table, operation, progress=cancel)
    assert_nothing_left(table, operation)
    assert calls == sorted(calls)


def test_progress_ends_with_all_rows_that_were_looked_at(table: hudi.Table) -> None:
    told: list[int] = []
    compact(table, only_operation(table), progress=told.append)
    assert told[-1] == 10 + 4 + 1


def test_a_staged_file_is_named_after_its_instant_group_and_attempt(table: hudi.Table) -> None:
    operation = only_operation(table)
    seen: list[str] = []
    compact(table, operation, attempt="7-1", progress=lambda _: seen.extend(file.name for file in staged_files(table)))
    assert set(seen) == {f"{LATER}_{operation.file_id}_7-1"}
    assert staged_files(table) == []


def test_an_operation_whose_stage_was_revoked_creates_nothing(table: hudi.Table) -> None:
    """Rule W2: a new owner renames the stages of older epochs."""
    operation = only_operation(table)
    folder = place(table) / STAGE

    def revoke(_: int) -> None:
        if folder.exists():
            folder.parent.rename(folder.parent.with_name("1.revoked"))

    with pytest.raises(DeposedError):
        compact(table, operation, progress=revoke)
    assert not (place(table) / operation.path).exists()


# --- rows of many kinds ---


@pytest.mark.parametrize(
    "sizes", [(100, 4_096), (4_000, 5_000), (4_095, 4_096, 4_095), (5_000, 100), (16_384, 4_095, 4_096)], ids=str
)
def test_texts_come_out_as_they_were_whether_or_not_a_file_is_large_enough_to_look_for_repeats(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    """Up to the first file of 4,096 rows columns are plain, from there on some are dictionaries: both meet in one row group."""
    table = create(tmp_path, buckets=1)
    wanted: dict[str, str] = {}
    for version, size in enumerate(sizes):
        texts = {f"k{n * (version + 1):06}": "the same" if version % 2 else f"{version} of {n}" for n in range(size)}
        table.upsert(rows(*((key, version, text) for key, text in texts.items())))
        wanted |= texts
    operation = only_operation(table)
    compact(table, operation)
    found: list[Any] = stored(table, operation).to_pylist()
    assert {row["id"]: row["note"] for row in found} == wanted
    assert len(found) == len(wanted)
