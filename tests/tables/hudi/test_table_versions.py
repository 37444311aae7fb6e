"""Tables of Hudi's versions 8 and 9: what their properties say, how their keys are written, and what an upgrade leaves us."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OptionError, TableExistsError, UnsupportedTableError
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from support.other_program import other_program
from support.refusals import refused
from support.tables import by_hudi_rs, create, notes, rows

PLACES = pa.schema([("id", pa.string()), ("a", pa.string()), ("b", pa.string())])
BY_UPGRADE = {
    "hoodie.table.version": "9",
    "hoodie.table.legacy.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.table.ordering.fields": "ts",
}
"""What Spark's upgrade of Hudi 1.2.0 adds; it takes ``OF_8`` away."""
OF_8 = ("hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id", "hoodie.table.precombine.field")


def properties_of(path: Path) -> dict[str, str]:
    return parse((path / PROPERTIES_PATH).read_bytes(), "")


def set_properties(path: Path, properties: Mapping[str, str]) -> None:
    (path / PROPERTIES_PATH).write_bytes(render(properties, "Edited"))


def keys_of(path: Path) -> list[str]:
    with hudi.open_table(str(path)) as table:
        found = table.scan(meta_columns=True).to_table()
    return sorted(found["_hoodie_record_key"].to_pylist())


def test_a_table_of_version_9_is_written_compacted_and_read_by_all(tmp_path: Path) -> None:
    table = create(tmp_path, table_version=9)
    found = properties_of(tmp_path / "table")
    assert (found["hoodie.table.version"], found["hoodie.table.initial.version"]) == ("9", "9")
    assert (found["hoodie.table.format"], found["hoodie.table.ordering.fields"]) == ("native", "ts")
    assert not found.keys() & set(OF_8)
    table.upsert(rows(("a", 2, "x"), ("b", 2, "y")))
    table.upsert(rows(("a", 1, "late"), ("b", 3, "z"), ("c", 3, "w")))
    assert table.compact().completion
    table.delete(rows(("c", 4, "")))
    for handle in (table, hudi.open_table(table.url)):
        assert notes(handle) == {"a": "x", "b": "z"}
        assert handle.verify().ok
    assert {row["id"]: row["note"] for row in by_hudi_rs(table.url)} == {"a": "x", "b": "z"}


@pytest.mark.parametrize(("version", "written"), [(8, "k"), (9, "id:k")])
def test_a_key_of_one_column_under_two_partition_columns_is_written_as_hudi_does_in_that_version(
    tmp_path: Path, version: int, written: str
) -> None:
    """Otherwise the next upsert of Spark would add the row once more (fact HF13)."""
    path = tmp_path / "t"
    table = hudi.create_table(str(path), PLACES, record_key="id", partition_by=["a", "b"], buckets=2, table_version=version)
    one = pa.Table.from_pylist([{"id": "k", "a": "x", "b": "y"}], PLACES)
    table.upsert(one)
    table.upsert(one)
    assert keys_of(path) == [written]


@pytest.mark.parametrize("partition_by", [(), ("a",)])
def test_other_keys_of_version_9_stand_alone(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    path = tmp_path / "t"
    table = hudi.create_table(str(path), PLACES, record_key="id", partition_by=partition_by, buckets=2, table_version=9)
    table.upsert(pa.Table.from_pylist([{"id": "k", "a": "x", "b": "y"}], PLACES))
    assert keys_of(path) == ["k"]


@pytest.mark.parametrize("version", [0, 7, 10])
def test_a_version_that_is_not_written_is_refused_before_there_is_a_table(tmp_path: Path, version: int) -> None:
    with refused(OptionError, f"table version {version}", "Choose one of 8, 9"):
        create(tmp_path, table_version=version)
    assert not (tmp_path / "table").exists()


def test_a_table_that_exists_is_opened_whatever_its_version_is(tmp_path: Path) -> None:
    create(tmp_path, table_version=9).upsert(rows(("a", 1, "x")))
    again = create(tmp_path, exist_ok=True)
    assert notes(again) == {"a": "x"}
    assert properties_of(tmp_path / "table")["hoodie.table.version"] == "9"
    with pytest.raises(TableExistsError):
        create(tmp_path, table_version=9)


def test_properties_that_were_never_published_are_those_of_the_version_that_slot_0_decided(tmp_path: Path) -> None:
    create(tmp_path, table_version=9)
    before = (tmp_path / "table" / PROPERTIES_PATH).read_bytes()
    (tmp_path / "table" / PROPERTIES_PATH).unlink()
    table = hudi.open_table(str(tmp_path / "table"))
    assert table.definition is not None
    table.upsert(rows(("a", 1, "x")))
    assert (tmp_path / "table" / PROPERTIES_PATH).read_bytes() == before


def test_an_adoption_notes_the_version_that_the_other_program_gave_the_table(tmp_path: Path) -> None:
    table, path = create(tmp_path), tmp_path / "table"
    table.upsert(rows(("a", 1, "x")))
    with other_program(path) as other:
        other.change_version(9)
        other.upsert(rows(("b", 1, "y")))
    assert table.adopt().completed
    for handle in (table, hudi.open_table(table.url)):
        assert handle.format_version == 9
    (path / PROPERTIES_PATH).unlink()
    assert hudi.open_table(table.url).format_version == 9, "the slot says it, too"


def test_a_handle_that_is_open_goes_on_when_the_table_was_only_upgraded(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    upgraded = {key: value for key, value in properties_of(path).items() if key not in OF_8} | BY_UPGRADE
    set_properties(path, upgraded)
    for handle in (table, hudi.open_table(table.url)):
        handle.upsert(rows(("a", 0, "late"), ("b", 2, "y")))
        assert notes(handle) == {"a": "x", "b": "y"}
    assert properties_of(path) == upgraded
    assert {row["id"]: row["note"] for row in by_hudi_rs(table.url)} == {"a": "x", "b": "y"}


def test_a_handle_that_is_open_stops_when_the_table_became_one_of_a_version_that_is_not_known(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    set_properties(path, properties_of(path) | {"hoodie.table.version": "10"})
    with refused(UnsupportedTableError, "is of table version 10", "Upgrade headgate-tables"):
        table.upsert(rows(("b", 1, "x")))
