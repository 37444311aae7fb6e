"""Columns in the names of folders are read as texts of a CSV are: with the same options, and only where they are needed."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.load.identity import identify
from headgate_cli.reading.hive_folders import folder_values
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import open_source

PLAIN = ReadOptions()
APRIL = dt.date(2026, 4, 3)


def written(folder: Path, *folders: str, columns: dict[str, list[Any]] | None = None) -> list[Path]:
    paths = [folder / name / "data_0.parquet" for name in folders]
    for at, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [at]} | (columns or {})), path)
    return paths


def values(path: Path, name: str, options: ReadOptions, types: pa.Schema | None = None) -> list[Any]:
    return [row[name] for piece in open_source(path, "parquet", types, options).pieces(0) for row in piece.rows.to_pylist()]


def test_an_ambiguous_folder_is_asked_and_each_option_that_decides_it_helps(tmp_path: Path) -> None:
    [path] = written(tmp_path, "d=3-4-2026")
    with pytest.raises(CommandError, match="column 'd'") as refused:
        values(path, "d", PLAIN)
    assert "--date-format" in refused.value.fix
    assert values(path, "d", replace(PLAIN, date_format="%d-%m-%Y")) == [APRIL]
    assert values(path, "d", replace(PLAIN, casts=(("d", pa.string()),))) == ["3-4-2026"]
    table = pa.schema([("id", pa.int64()), ("d", pa.string())])
    assert values(path, "d", PLAIN, table) == ["3-4-2026"]
    assert values(path, "id", PLAIN, table.remove(1)) == [0], "a table without the column needs no type of it"
    assert values(path, "id", replace(PLAIN, select=("id",))) == [0]
    [own] = written(tmp_path / "own", "d=3-4-2026", columns={"d": [APRIL]})
    assert values(own, "d", PLAIN) == [APRIL], "the file's own column counts"


def test_a_type_fits_the_folders_of_all_files_and_a_word_for_null_is_null_there_too(tmp_path: Path) -> None:
    paths = written(tmp_path, "n=7", "n=007", "n=NA")
    assert values(paths[0], "n", replace(PLAIN, files=tuple(paths[::2]), nulls=("", "NA"))) == [7]
    assert values(paths[2], "n", replace(PLAIN, files=tuple(paths[::2]), nulls=("", "NA"))) == [None]
    assert values(paths[0], "n", replace(PLAIN, files=tuple(paths[:2]))) == ["7"]


def test_a_file_has_the_same_columns_and_is_the_same_load_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [path] = written(tmp_path, "day=2026-02-01")
    (path.parent / "deeper").mkdir()
    for folder, name in ((path.parent, "data_0.parquet"), (path.parent / "deeper", "../data_0.parquet"), (tmp_path, path)):
        monkeypatch.chdir(folder)
        assert folder_values(Path(name)) == {"day": "2026-02-01"}
        assert identify(Path(name), "upsert", PLAIN) == identify(path, "upsert", PLAIN)


def test_files_of_other_folder_columns_or_of_other_letters_are_no_versions_of_one_file(tmp_path: Path) -> None:
    paths = written(tmp_path, "day=2026-02-01", "day=2026-02-02", "1", "2")
    for name in ("Köln.csv", "Kéln.csv", "x" * 130 + ".csv", "y" + "x" * 130 + ".csv", "data_0.parquet\u00df"):
        paths.append(tmp_path / name)
        paths[-1].write_text("id\n1\n")
    families = [identify(path, "upsert", PLAIN).family for path in paths]
    assert len(set(families)) == len(paths) - 1
    assert families[2] == families[3] == "load:upsert:data_0.parquet:"
    assert all(len(family) < 200 and family.isascii() for family in families)
