"""What is no table of ours, or has features that are not written: it says which and what to do; reading goes as far as it can."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import MetadataTableError, NotATableError, OptionError, TablesError, UnsupportedTableError
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from support.golden import comparable, expected_rows, names, unpack
from support.refusals import refused
from support.tables import SCHEMA, create, notes, rows

V8 = names("*_v8_mor_*")
V9 = names("*_v9_mor_bucket_*")


def set_property(path: Path, key: str, value: str) -> None:
    """The checksum is of the names only, and stays right."""
    file = path / PROPERTIES_PATH
    file.write_bytes(render(parse(file.read_bytes(), "") | {key: value}, "Edited"))


def everything(path: Path) -> dict[str, bytes | None]:
    return {str(file): file.read_bytes() if file.is_file() else None for file in path.rglob("*")}


# --- no table ---


@pytest.mark.parametrize("kind", ["missing", "empty", "with other files", "a file"])
def test_a_place_without_a_table_is_not_opened(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "a file":
        place.write_text("no table")
    elif kind != "missing":
        place.mkdir()
        if kind == "with other files":
            (place / "rows.parquet").touch()
    before = everything(tmp_path)
    with refused(NotATableError, "place holds no Hudi table", "create_table"):
        hudi.open_table(str(place))
    assert everything(tmp_path) == before


@pytest.mark.parametrize("below", ["", "/below/it"])
def test_a_table_is_not_created_where_a_file_stands(tmp_path: Path, below: str) -> None:
    (tmp_path / "place").write_text("no table")
    before = everything(tmp_path)
    with refused(OptionError, f"place{below}/.*Not a directory", "A file stands .* choose another place"):
        hudi.create_table(f"{tmp_path}/place{below}", SCHEMA, record_key="id")
    assert everything(tmp_path) == before


def test_a_folder_with_other_files_becomes_a_table_and_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table/readme.txt").write_text("kept")
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    assert notes(table) == {"a": "x"}
    assert (tmp_path / "table/readme.txt").read_text() == "kept"


# --- versions ---


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("6", "Upgrade the table with Hudi"),
        ("7", "Upgrade the table with Hudi"),
        ("10", "Upgrade headgate-tables"),
        ("²", "Upgrade"),
    ],
)
@pytest.mark.parametrize("ours", [True, False])
def test_a_table_of_another_version_is_not_opened(tmp_path: Path, version: str, fix: str, ours: bool) -> None:
    path = Path(create(tmp_path).url.removeprefix("file://")) if ours else Path(unpack(V8[0], tmp_path))
    set_property(path, "hoodie.table.version", version)
    with refused(UnsupportedTableError, f"hoodie.properties is of table version {version}", fix):
        hudi.open_table(str(path))


@pytest.mark.parametrize("name", V8 + V9)
def test_a_table_of_spark_is_read_but_not_written(tmp_path: Path, name: str) -> None:
    path = Path(unpack(name, tmp_path))
    before = everything(path)
    table = hudi.open_table(str(path), metadata_table="remove")
    found = table.scan(meta_columns=True).to_table()
    wanted = expected_rows(name).select(found.column_names)
    for call in (lambda: table.upsert(found), lambda: table.delete(found), table.transaction):
        with refused(UnsupportedTableError, "not made by this library", "adopt"):
            call()
    assert everything(path) == before
    assert comparable(found.to_pylist()) == comparable(wanted.to_pylist())


# --- features ---


@pytest.mark.parametrize(
    ("key", "value", "error", "what", "fix"),
    [
        ("hoodie.table.type", "COPY_ON_WRITE", UnsupportedTableError, "copy-on-write", "Create a merge-on-read table"),
        ("hoodie.table.cdc.enabled", "true", UnsupportedTableError, "CDC", "Switch hoodie.table.cdc.enabled off"),
        ("hoodie.table.base.file.format", "ORC", UnsupportedTableError, "not Parquet", "Load the rows"),
        ("hoodie.table.metadata.partitions", "files", MetadataTableError, "metadata table", "metadata_table='remove'"),
        ("hoodie.table.metadata.partitions.inflight", "files", MetadataTableError, "metadata table", "metadata_table='remove'"),
    ],
)
def test_a_feature_that_is_not_written_appears_on_a_table_of_ours(
    tmp_path: Path, key: str, value: str, error: type[TablesError], what: str, fix: str
) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    original = (path / PROPERTIES_PATH).read_bytes()
    set_property(path, key, value)
    before = everything(path)
    for handle in (hudi.open_table(table.url), hudi.open_table(table.url)):
        with refused(error, what, fix):
            handle.upsert(rows(("b", 1, "x")))
        assert everything(path) == before
        assert handle.scan().to_table().to_pylist() == rows(("a", 1, "x")).to_pylist()
    with refused(error, what, fix):  # one that owns the table writes its files first and then looks once more
        table.upsert(rows(("b", 1, "x")))
    assert len(table.commits()) == 1
    (path / PROPERTIES_PATH).write_bytes(original)
    table.upsert(rows(("b", 1, "x")))
    assert notes(table) == {"a": "x", "b": "x"}


@pytest.mark.parametrize(
    ("key", "value", "what", "fix"),
    [
        ("hoodie.populate.meta.fields", "false", "virtual keys", "meta columns"),
        ("hoodie.datasource.write.drop.partition.columns", "true", "partition columns", "drop.partition.columns=false"),
        ("hoodie.record.merge.mode", "CUSTOM", "a way of its own", "read this table with Spark"),
        ("hoodie.table.ordering.fields", "seq,qty", "several fields", "Read this table with Spark"),
    ],
)
def test_a_table_that_would_be_read_wrongly_is_not_opened(tmp_path: Path, key: str, value: str, what: str, fix: str) -> None:
    path = Path(unpack("h120_v8_mor_bucket_part2_url", tmp_path))
    set_property(path, key, value)
    with refused(UnsupportedTableError, f"hoodie.properties .*{what}", fix):
        hudi.open_table(str(path))


def test_a_copy_on_write_table_is_read(tmp_path: Path) -> None:
    """Base files alone; made of a table of ours whose rows are all in base files."""
    table = create(tmp_path)
    table.upsert(rows(("a", 1, "x"), ("b", 2, "y")))
    set_property(tmp_path / "table", "hoodie.table.type", "COPY_ON_WRITE")
    found = hudi.open_table(table.url).scan(["id", "note"]).to_table()
    assert pa.Table.equals(found.sort_by("id"), pa.table({"id": ["a", "b"], "note": ["x", "y"]}))
