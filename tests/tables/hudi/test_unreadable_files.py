"""Data files that cannot be read here are refused by name: a table never shows fewer rows than it has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.errors import UnsupportedTableError
from headgate_tables.face.reader import Mode
from headgate_tables.hudi.log.names import base_name, parse_base_name
from headgate_tables.hudi.query import MODES
from support.golden import names, unpack
from support.other_program import other_program
from support.refusals import refused
from support.tables import create, notes, rows

LANCE = names("*_lance*", writer="hudi")
FORMATS = ["orc", "hfile", "lance"]
MOVE = "Move it out of the table"


def bases(path: Path) -> list[Path]:
    """Base files of the table, oldest first."""
    found = [(name.instant, file) for file in path.glob("**/*_*") if (name := parse_base_name(file.name)) is not None]
    return [file for _, file in sorted(found)]


def table_in_two_partitions(tmp_path: Path) -> hudi.Table:
    table = create(tmp_path, buckets=1)
    table.upsert(rows(("a", 1, "x")))
    table.upsert(rows(("b", 1, "y"), part="q"))
    return table


# --- tables of other programs ---


@pytest.mark.parametrize("name", LANCE)
@pytest.mark.parametrize("mode", MODES)
def test_a_table_of_lance_files_is_refused_by_name(tmp_path: Path, name: str, mode: Mode) -> None:
    table = hudi.open_table(unpack(name, tmp_path, writer="hudi"))
    for arguments in ({}, {"as_of": table.commits()[0].completion}, {"since": "0" * 17}):
        if mode == "snapshot" or "since" not in arguments:
            with refused(
                UnsupportedTableError, r"_\d{17}\.lance is a base file in the format LANCE", "Read the table with Spark"
            ):
                table.scan(mode=mode, **arguments)


@pytest.mark.parametrize("name", LANCE)
def test_verification_names_every_file_that_is_not_read(tmp_path: Path, name: str) -> None:
    path = Path(unpack(name, tmp_path, writer="hudi"))
    found = hudi.open_table(str(path)).verify()
    assert not found.ok
    assert {each.path for each in found.findings} == {str(file.relative_to(path)) for file in path.glob("**/*.lance")}
    assert all("in the format LANCE" in each.problem for each in found.findings)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_with_a_base_file_of_another_format_is_not_adopted(tmp_path: Path, kind: str) -> None:
    path = Path(unpack("h120_v8_mor_bucket_np", tmp_path))
    base = bases(path)[0]
    base.rename(base.with_suffix(f".{kind}"))
    with refused(UnsupportedTableError, f"{base.stem}.{kind} is a base file in the format {kind.upper()}", "Read the table with"):
        hudi.open_table(str(path)).adopt(buckets=2)
    assert not (path / ".hoodie/.headgate").exists()


# --- tables of ours ---


@pytest.mark.parametrize("kind", FORMATS)
def test_a_base_file_of_another_format_hides_no_rows(tmp_path: Path, kind: str) -> None:
    """A newer slice by another program: what is older must not be shown in its place. Other partitions can be read."""
    table = table_in_two_partitions(tmp_path)
    with other_program(tmp_path / "table", buckets=1) as other:
        other.upsert(rows(("c", 1, "z"), part="q"))
        other.compact()
    newest = bases(tmp_path / "table/q")[-1]
    newest.rename(newest.with_suffix(f".{kind}"))
    fresh = hudi.open_table(table.url)
    with refused(UnsupportedTableError, f"q/{newest.stem}.{kind} is a base file in the format {kind.upper()}", "Read the table"):
        fresh.scan()
    assert fresh.scan(partitions=["p"]).to_table()["id"].to_pylist() == ["a"]
    assert any(each.path == f"q/{newest.stem}.{kind}" and "format" in each.problem for each in fresh.verify().findings)


@pytest.mark.parametrize("ending", [".parquet.tmp", "_1.log.parquet", ""])
def test_an_unknown_name_of_a_committed_instant_is_refused_until_it_is_moved_away(tmp_path: Path, ending: str) -> None:
    table = table_in_two_partitions(tmp_path)
    newest = bases(tmp_path / "table/q")[-1]
    strange = newest.with_name(f"{newest.stem}{ending}")
    shutil.copy(newest, strange)
    fresh = hudi.open_table(table.url)
    with refused(UnsupportedTableError, f"q/{strange.name} carries a committed instant", MOVE):
        fresh.scan()
    assert fresh.scan(partitions=["p"]).to_table()["id"].to_pylist() == ["a"]
    assert [each.path for each in fresh.verify().findings] == [f"q/{strange.name}"]
    table.upsert(rows(("c", 1, "z"), part="q"))  # who owns the table goes on: its own commits say what their files are
    strange.unlink()
    assert notes(hudi.open_table(table.url)) == {"a": "x", "b": "y", "c": "z"}


def test_an_unknown_name_of_an_instant_that_never_completed_hides_nothing(tmp_path: Path) -> None:
    table = table_in_two_partitions(tmp_path)
    newest = bases(tmp_path / "table/q")[-1]
    for time in ("29991231235959999", table.commits()[0].completion):
        shutil.copy(newest, newest.with_name(f"{base_name('other', '0-1-2', time)}.tmp"))
    (tmp_path / "table/q/readme_20260101000000000.txt").touch()
    assert notes(hudi.open_table(table.url)) == {"a": "x", "b": "y"}
    assert hudi.open_table(table.url).verify().ok


@pytest.mark.parametrize("ending", [".orc", ".parquet.tmp"])
def test_what_another_program_wrote_and_cannot_be_read_is_not_adopted(tmp_path: Path, ending: str) -> None:
    create(tmp_path, buckets=1).upsert(rows(("a", 1, "x")))
    path = tmp_path / "table"
    with other_program(path, buckets=1) as other:
        other.upsert(rows(("b", 1, "y"), part="q"))
    theirs = bases(path / "q")[-1]
    theirs.rename(theirs.with_name(f"{theirs.stem}{ending}"))
    table = hudi.open_table(str(path))
    with refused(UnsupportedTableError, f"q/{theirs.stem}{ending} ", "Read the table with|read the table with"):
        table.adopt()
