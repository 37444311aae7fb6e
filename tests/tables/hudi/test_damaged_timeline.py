"""Damaged timeline, properties, slots and archives: named, refused where they are needed, in the way of nothing else."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import CorruptFileError, MissingFileError, SchemaError, TablesError, UnsupportedTableError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.properties import PROPERTIES_PATH
from support.damage import changed, flip, full, layered_table, text, wrong_paths
from support.golden import comparable, expected_rows, unpack
from support.refusals import refused
from support.tables import rows

RESTORE = "Restore (the file|it) from a copy"
SEED = 20261121


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return layered_table(tmp_path_factory.mktemp("damage"))


@pytest.fixture
def table(template: Path, tmp_path: Path) -> hudi.Table:
    """A copy, which waits for no disk."""
    shutil.copytree(template, tmp_path / "table")
    return hudi.open_table(str(tmp_path / "table"))


def test_damaged_commit_metadata_is_reported_where_it_is_needed(table: hudi.Table) -> None:
    reader, before = hudi.open_table(table.url), len(text(table))
    assert len(text(reader)) == before
    result = table.upsert(rows(("news", 1, "x")))
    name = f".hoodie/timeline/{result.instant}_{result.completion}.deltacommit"
    content = full(table, name).read_bytes()
    for damaged in (
        b"",
        content[:100],
        flip(content, content.index(b"avro.schema")),
        flip(content, content.index(b'"name"') + 1),
    ):
        with changed(full(table, name), damaged):
            with refused(CorruptFileError, name, RESTORE):
                reader.scan()
            assert len(text(hudi.open_table(table.url))) == before + 1, "names of files tell a new handle enough"
            assert name in wrong_paths(table)
    assert len(text(reader)) == before + 1


def test_damaged_commit_metadata_of_a_table_of_spark_is_reported(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    newest = max((path / ".hoodie/timeline").glob("*.deltacommit"), key=lambda file: file.name.split("_")[1])
    with changed(newest, newest.read_bytes()[:1000]), refused(CorruptFileError, newest.name, RESTORE):
        hudi.open_table(str(path)).scan()
    with changed(newest, b""):
        assert wrong_paths(hudi.open_table(str(path))) == [f".hoodie/timeline/{newest.name}"]
    found = hudi.open_table(str(path)).scan(meta_columns=True).to_table()
    assert comparable(found.to_pylist()) == comparable(
        expected_rows("h120_v8_mor_bucket_np").select(found.column_names).to_pylist()
    )


ARCHIVED = ("manifest_6", "20261120235658651_20261120235702553_0.parquet", "_version_")
BROKEN = (b"", b"\xff\xfe", b"{}", None)


@pytest.mark.parametrize(
    ("damaged", "content"), list(itertools.product(ARCHIVED, BROKEN))[:-1]
)  # without _version_ there is no archive
def test_a_damaged_archive_of_the_timeline_is_reported(tmp_path: Path, damaged: str, content: bytes | None) -> None:
    path = Path(unpack("h120_v9_mor_archived", tmp_path))
    (path / ".of-an-archived-instant-0_20261120235658651.log.1_0-1-1").touch()
    with changed(path / ".hoodie/timeline/history" / damaged, content), refused(CorruptFileError, "history/", "Restore"):
        hudi.open_table(str(path)).scan()
    assert hudi.open_table(str(path)).scan().to_table().num_rows > 0


def text_or_error(url: str) -> list[str] | TablesError:
    try:
        return text(hudi.open_table(url))
    except (CorruptFileError, UnsupportedTableError) as error:
        return error


@pytest.mark.slow
def test_properties_cut_or_flipped_anywhere_open_right_or_not_at_all(table: hudi.Table) -> None:
    """A flipped key would otherwise leave a property out, and rows would be merged in another way."""
    right, path = text(table), full(table, PROPERTIES_PATH)
    content, chance, errors = path.read_bytes(), random.Random(SEED), 0
    flips = [flip(content, at, chance.randrange(8)) for at in range(0, len(content), 3)]
    for damaged in [*flips, *(content[:length] for length in range(0, len(content), 7))]:
        with changed(path, damaged):
            found = text_or_error(table.url)
            if isinstance(found, TablesError):
                errors += PROPERTIES_PATH in found.message
            else:
                assert found == right, damaged
    assert errors > 100


def test_a_wrong_checksum_of_the_properties_is_reported(table: hudi.Table) -> None:
    """Fact HF12."""
    path = full(table, PROPERTIES_PATH)
    renamed = path.read_bytes().replace(b"hoodie.table.name=table", b"hoodie.table.name=other")
    message = "hoodie.properties has the checksum"
    with changed(path, renamed), refused(CorruptFileError, message, "correct hoodie.table.checksum"):
        hudi.open_table(table.url)


def test_properties_that_order_a_table_of_spark_by_a_column_that_it_lacks_are_reported(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_parquetlog", tmp_path))
    properties = path / PROPERTIES_PATH
    properties.write_bytes(
        re.sub(rb"(?m)^(hoodie.table.(?:precombine.field|ordering.fields)=).*$", rb"\1sequel", properties.read_bytes())
    )
    with refused(CorruptFileError, f"{PROPERTIES_PATH} orders the table by 'sequel'", RESTORE):
        hudi.open_table(str(path)).scan().to_table()


def test_properties_that_part_a_table_of_spark_by_a_column_that_it_lacks_are_reported(tmp_path: Path) -> None:
    path = Path(unpack("h120_v8_mor_bucket_part2_url", tmp_path))
    properties = path / PROPERTIES_PATH
    properties.write_bytes(re.sub(rb"(?m)^(hoodie.table.partition.fields=)\w+", rb"\1elsewhere", properties.read_bytes()))
    with pytest.raises(SchemaError, match="the table has no column 'elsewhere'"):
        hudi.open_table(str(path)).scan(filter="amount > 0").to_table()


def test_properties_that_vanish_stop_an_open_handle(table: hudi.Table) -> None:
    table.upsert(rows(("a", 1, "x")))
    before, commits = text(table), table.commits()
    with changed(full(table, PROPERTIES_PATH), None), refused(MissingFileError, PROPERTIES_PATH, RESTORE):
        table.upsert(rows(("a", 1, "x")))
    assert (text(table), table.commits()) == (before, commits)
    assert table.upsert(rows(("a", 1, "x"))).upserted == 1


@pytest.mark.parametrize("slot", [0, 1, 3])
@pytest.mark.parametrize("position", [0, 20, 100, -2])
def test_a_flipped_bit_in_a_slot_keeps_from_writing_and_not_from_reading(table: hudi.Table, slot: int, position: int) -> None:
    before, commits = text(table), table.commits()
    path = full(table, LOG_LAYOUT.slot_path(slot))
    with changed(path, flip(path.read_bytes(), position)):
        damaged = hudi.open_table(table.url)
        assert (text(damaged), damaged.commits()) == (before, commits)
        files = sorted(full(table, "").rglob("*"))
        for _ in range(2):
            with refused(CorruptFileError, LOG_LAYOUT.slot_path(slot), "Restore"):
                damaged.upsert(rows(("a", 1, "x")))
        assert sorted(full(table, "").rglob("*")) == files
        assert not damaged.verify().ok
    assert hudi.open_table(table.url).upsert(rows(("a", 1, "x"))).upserted == 1
    assert hudi.open_table(table.url).verify().ok


def test_a_missing_slot_keeps_from_writing_and_not_from_reading(table: hudi.Table) -> None:
    before = text(table)
    with changed(full(table, LOG_LAYOUT.slot_path(2)), None):
        damaged = hudi.open_table(table.url)
        assert text(damaged) == before
        with refused(CorruptFileError, f"{LOG_LAYOUT.slots} has a gap", "restore"):
            damaged.upsert(rows(("a", 1, "x")))


def test_a_slot_whose_name_is_a_far_number_is_a_gap_and_takes_no_memory(table: hudi.Table) -> None:
    before = text(table)
    slot, far = full(table, LOG_LAYOUT.slot_path(2)), full(table, f"{LOG_LAYOUT.slots}/{10**19 + 2}")
    slot.rename(far)
    damaged = hudi.open_table(table.url)
    assert text(damaged) == before
    with refused(CorruptFileError, f"slot 2 is not there, though slot {10**19 + 2} is listed", "renamed"):
        damaged.upsert(rows(("a", 1, "x")))
    far.rename(slot)
    assert hudi.open_table(table.url).upsert(rows(("a", 1, "x"))).upserted == 1


def test_a_flipped_bit_in_a_fold_keeps_from_writing_and_not_from_reading(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 2)
    table.upsert(rows(("a", 1, "x")))
    before = text(table)
    fold = max(full(table, LOG_LAYOUT.folds).iterdir())
    with changed(fold, flip(fold.read_bytes(), 200)):
        damaged = hudi.open_table(table.url)
        assert text(damaged) == before
        with refused(CorruptFileError, fold.name, "Restore"):
            damaged.upsert(rows(("b", 1, "x")))
    assert hudi.open_table(table.url).upsert(rows(("b", 1, "x"))).upserted == 1


READERS: dict[str, Callable[[hudi.Table], object]] = {
    "instants": lambda table: table.instants(),
    "archive": lambda table: table.archive(),
    "scan": lambda table: hudi.open_table(table.url).scan(since="20200101000000000"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_instant_that_is_listed_and_no_file_is_named(table: hudi.Table, read: Callable[[hudi.Table], object]) -> None:
    table.configure({"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    table.compact()
    first = table.commits()[0]
    name = f".hoodie/timeline/{first.instant}_{first.completion}.deltacommit"
    file = full(table, name)
    file.rename(file.with_suffix(".aside"))
    file.symlink_to("nowhere")
    with refused(CorruptFileError, f"{name} vanished while it was read", "restore it from a copy"):
        read(table)
    assert name in wrong_paths(hudi.open_table(table.url))
