"""Columns that are added and widened while a table is in use: what readers and writers then do."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headgate_tables import hudi
from headgate_tables.errors import DeposedError, OtherDefinitionError, SchemaError, TransactionError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.opening import open_table
from headgate_tables.system import SystemIds
from support.faults import READS, FailingStore, Fault, InPlaceStore, KilledError
from support.handles import open_on
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.refusals import refused
from support.same_rows import assert_same_rows
from support.systems import SetClock, system
from support.tables import SCHEMA, by_hudi_rs, create, keys, rows

GATE = Alteration(add={"gate": pa.string()})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    made = create(tmp_path, buckets=1)
    made.upsert(rows(("a", 1, "base"), ("b", 1, "base"), ("c", 1, "base")))
    made.upsert(rows(("a", 2, "log"), ("d", 2, "log")))
    return made


@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_each_column_alone_has_a_value_for_every_row_also_of_logs_that_lack_it(tmp_path: Path, block_format: str) -> None:
    table = create(tmp_path, buckets=1)
    table.configure({"hoodie.logfile.data.block.format": block_format})
    table.upsert(rows(("a", 1, "base"), ("b", 1, "base"), ("c", 1, "base")))
    table.upsert(rows(("a", 2, "log"), ("d", 2, "log"), ("e", 2, "log"), ("f", 2, "log")))
    table.delete(keys(("f", 4)))
    table.alter(GATE)
    table.upsert(gated(("e", 5, "later", "open")))
    whole = table.scan().to_table()
    assert whole.num_rows == 5
    for name in whole.column_names:
        alone = table.scan([name]).to_table()
        assert sorted(alone[name].to_pylist(), key=str) == sorted(whole[name].to_pylist(), key=str)
    assert table.scan(["gate"], filter=pc.field("gate").is_null()).to_table().num_rows == 4


def gated(*entries: tuple[str, int, str, str | None]) -> pa.Table:
    found = [{"id": i, "part": "p", "ts": ts, "note": note, "gate": gate} for i, ts, note, gate in entries]
    return pa.Table.from_pylist(found, SCHEMA.append(pa.field("gate", pa.string())))


def assert_readers_show(path: Path, *entries: tuple[str, int, str, str | None]) -> None:
    """Ours and hudi-rs, each with a handle of its own."""
    wanted = gated(*entries)
    assert_same_rows(read_by_us(path), wanted, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(path)), wanted, "hudi-rs")


def test_an_added_column_is_there_at_once_and_null_in_every_older_row(table: hudi.Table, path: Path) -> None:
    result = table.alter(GATE)
    assert result.added == ["gate: string"]
    assert result.schema == table.schema == SCHEMA.append(pa.field("gate", pa.string()))
    assert table.commits()[-1].instant == result.instant
    assert_readers_show(path, ("a", 2, "log", None), ("b", 1, "base", None), ("c", 1, "base", None), ("d", 2, "log", None))


def test_rows_with_the_new_column_merge_with_older_ones_before_and_after_a_compaction(table: hudi.Table, path: Path) -> None:
    table.alter(GATE)
    table.upsert(gated(("a", 3, "new", "A1"), ("c", 0, "late", "A2"), ("e", 3, "new", None)))
    table.delete(keys(("d", 4)))
    shown = [("a", 3, "new", "A1"), ("b", 1, "base", None), ("c", 1, "base", None), ("e", 3, "new", None)]
    assert_readers_show(path, *shown)
    table.compact()
    assert not [each for each in table.scan().slices() if each.logs]
    assert_readers_show(path, *shown)
    table.upsert(gated(("b", 9, "newest", "B7")))
    shown[1] = ("b", 9, "newest", "B7")
    assert_readers_show(path, *shown)


def test_a_plan_of_before_is_executed_after_and_loses_nothing(table: hudi.Table, path: Path) -> None:
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    table.alter(GATE)
    table.upsert(gated(("b", 3, "new", "A1")))
    table.compact()
    assert plan.instant in {each.instant for each in table.commits()}
    assert_readers_show(path, ("a", 2, "log", None), ("b", 3, "new", "A1"), ("c", 1, "base", None), ("d", 2, "log", None))


def test_rows_of_before_are_refused_by_the_library_which_wants_whole_rows(table: hudi.Table) -> None:
    table.alter(GATE)
    with refused(SchemaError, "missing: gate", "Send exactly these"):
        table.upsert(rows(("a", 3, "old")))


def test_a_change_that_is_made_already_makes_no_commit(table: hudi.Table) -> None:
    table.alter(GATE)
    before = table.commits()
    assert table.alter(GATE).instant == ""
    assert table.commits() == before


def test_a_plan_of_an_alteration_changes_nothing(table: hudi.Table) -> None:
    before = table.commits()
    planned = table.alter(GATE, plan_only=True)
    assert (planned.instant, planned.added, planned.schema.names[-1]) == ("", ["gate: string"], "gate")
    assert table.commits() == before
    assert table.schema == SCHEMA


def test_a_refused_alteration_changes_nothing(table: hudi.Table) -> None:
    before = table.commits()
    with refused(SchemaError, "'note' is string and cannot become int64", "add a column"):
        table.alter(Alteration(add={"gate": pa.string()}, widen={"note": pa.int64()}))
    assert table.commits() == before
    assert table.schema == SCHEMA


def test_an_open_transaction_keeps_a_table_from_being_altered(table: hudi.Table) -> None:
    transaction = table.transaction()
    transaction.upsert(rows(("a", 5, "open")))
    with refused(TransactionError, "a transaction is open", "Commit or roll it back"):
        table.alter(GATE)
    transaction.commit()
    table.alter(GATE)
    assert table.schema.names[-1] == "gate"


def test_handles_of_before_show_the_new_column_and_lose_the_table_as_by_any_takeover(table: hudi.Table, path: Path) -> None:
    reader, later = hudi.open_table(str(path)), hudi.open_table(str(path))
    assert reader.scan().schema == SCHEMA
    later.alter(GATE)
    later.upsert(gated(("f", 5, "new", "A1")))
    assert [row["gate"] for row in reader.scan().to_table().to_pylist() if row["id"] == "f"] == ["A1"]
    with pytest.raises(DeposedError):
        table.upsert(rows(("a", 3, "old")))


@pytest.mark.slow
def test_the_next_owner_knows_the_columns_from_slots_and_from_a_fold(table: hudi.Table, path: Path) -> None:
    table.alter(GATE)
    assert open_table(str(path)).definition.schema.names[-1] == "gate"  # type: ignore[union-attr]
    for number in range(110):
        table.upsert(gated(("a", 10 + number, "many", f"A{number}")))
    table.upsert(gated(("a", 900, "many", "last")))
    assert list((path / LOG_LAYOUT.folds).iterdir())
    reopened = open_table(str(path))
    assert reopened.scan().schema.names[-1] == "gate"
    reopened.upsert(gated(("z", 1, "again", "Z")))  # type: ignore[attr-defined]
    assert {row["id"]: row["gate"] for row in by_hudi_rs(str(path))}["z"] == "Z"


@pytest.mark.parametrize("altered_twice", [False, True])
def test_a_restore_to_before_an_alteration_takes_the_columns_back(table: hudi.Table, path: Path, *, altered_twice: bool) -> None:
    saved = table.savepoint("before")
    table.alter(GATE)
    table.upsert(gated(("a", 3, "new", "A1"), ("e", 3, "new", "A2")))
    if altered_twice:
        table.savepoint("between")
        table.alter(Alteration(add={"more": pa.int64()}))
    table.restore(saved)
    assert table.schema == SCHEMA
    wanted = rows(("a", 2, "log"), ("b", 1, "base"), ("c", 1, "base"), ("d", 2, "log"))
    assert_same_rows(read_by_us(path), wanted, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(path)), wanted, "hudi-rs")
    table.upsert(rows(("a", 3, "after")))
    table.alter(GATE)
    table.upsert(gated(("b", 5, "new", "B1")))
    assert_readers_show(path, ("a", 3, "after", None), ("b", 5, "new", "B1"), ("c", 1, "base", None), ("d", 2, "log", None))


@pytest.mark.slow
def test_a_restore_takes_columns_back_that_a_fold_has_kept_for_the_savepoint(table: hudi.Table, path: Path) -> None:
    saved = table.savepoint("before")
    table.alter(GATE)
    for number in range(110):
        table.upsert(gated(("a", 3 + number, "new", "A1")))
    assert list((path / LOG_LAYOUT.folds).iterdir())
    reopened = open_table(str(path))
    reopened.restore(saved)  # type: ignore[attr-defined]
    assert reopened.schema == SCHEMA


def test_a_restore_to_behind_an_alteration_keeps_the_columns(table: hudi.Table, path: Path) -> None:
    table.alter(GATE)
    table.upsert(gated(("a", 3, "new", "A1")))
    saved = table.savepoint("behind")
    table.upsert(gated(("a", 4, "newer", "A2")))
    table.restore(saved)
    assert_readers_show(path, ("a", 3, "new", "A1"), ("b", 1, "base", None), ("c", 1, "base", None), ("d", 2, "log", None))


def test_a_table_without_rows_is_altered_and_shows_its_columns(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.alter(GATE)
    assert read_by_us(tmp_path / "table") == gated()
    table.upsert(gated(("a", 1, "first", "A1")))
    assert_readers_show(tmp_path / "table", ("a", 1, "first", "A1"))


def test_a_program_that_asks_for_the_table_as_it_was_created_or_as_it_is_goes_on(table: hudi.Table) -> None:
    table.alter(GATE)
    for schema in (SCHEMA, SCHEMA.append(pa.field("gate", pa.string()))):
        found = hudi.create_table(
            table.url, schema, record_key="id", partition_by="part", ordering="ts", buckets=1, exist_ok=True
        )
        assert found.schema.names[-1] == "gate"
    gato = SCHEMA.append(pa.field("gato", pa.string()))
    with refused(OtherDefinitionError, r"it has no column 'gato' \(string\)", "`headgate table alter` adds"):
        hudi.create_table(table.url, gato, record_key="id", partition_by="part", ordering="ts", buckets=1, exist_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("store_class", [FailingStore, InPlaceStore], ids=["staged", "in place"])
def test_c7_an_alteration_that_dies_at_any_call_is_made_or_is_not(tmp_path: Path, store_class: type[FailingStore]) -> None:
    outcomes = set()
    for step in range(2, 1000):
        at, after_it = divmod(step, 2)
        path = tmp_path / str(step) / "table"
        create(path.parent, buckets=1).upsert(rows(("a", 1, "x")))
        store = store_class(path, SystemIds())
        table = open_on(store, system(SetClock()))
        table.own()
        fault = store.fault = Fault(at, after=bool(after_it))
        with contextlib.suppress(KilledError):
            table.alter(GATE)
        if fault.happened.startswith(READS):
            continue
        again = open_on(store_class(path, SystemIds()), system(SetClock()))
        again.own()
        altered = "gate" in again.schema.names
        if fault.happened:
            outcomes.add(altered)
        shown = [("a", 1, "x", None), ("b", 2, "y", "A1" if altered else None)]
        again.alter(GATE)
        again.upsert(gated(*shown[1:]))
        assert_readers_show(path, *shown)
        if not fault.happened:
            break
    assert not fault.happened
    assert outcomes == {False, True}, "no kill fell behind the slot, or none before it"


NARROW = pa.schema([("id", pa.string()), ("n", pa.int32()), ("m", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(5, 2))])
WIDE = {"n": pa.int64(), "m": pa.float64(), "f": pa.float64(), "d": pa.decimal128(18, 2)}


def narrow_row(key: str, value: int) -> dict[str, Any]:
    return {"id": key, "n": value, "m": value, "f": value / 2, "d": Decimal(value) / 4}


def wide_row(key: str, value: int) -> dict[str, Any]:
    return {"id": key, "n": 2**40 + value, "m": value / 3, "f": value / 3, "d": Decimal(10**12 + value) / 4}


def test_widened_columns_hold_the_older_values_and_larger_ones(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    table = hudi.create_table(url, NARROW, record_key="id", buckets=1)
    table.upsert(pa.Table.from_pylist([narrow_row(key, 3) for key in "abc"], NARROW))
    table.upsert(pa.Table.from_pylist([narrow_row("b", 5)], NARROW))
    table.alter(Alteration(widen=WIDE))
    wide = pa.schema([("id", pa.string()), *WIDE.items()])
    table.upsert(pa.Table.from_pylist([wide_row("c", 7), wide_row("d", 9)], wide))
    wanted = pa.Table.from_pylist([narrow_row("a", 3), narrow_row("b", 5), wide_row("c", 7), wide_row("d", 9)], wide)
    assert_same_rows(read_by_us(tmp_path / "table"), wanted, "our reader")
    table.compact()
    assert_same_rows(read_by_us(tmp_path / "table"), wanted, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "table")), wanted, "hudi-rs")
