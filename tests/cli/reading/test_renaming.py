"""Columns get other names, whatever the format; types of a table, casts and errors find them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.failures import CommandError
from headgate_cli.load.plan import schema_of_files
from headgate_cli.load.reading_options import reading_options
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import format_of, open_source

RENAMES = (("Order ID", "order_id"), ("größe=cm", "size"))
ROWS = [{"order_id": "007", "size": 1.5, "n": 1}]
FILES: dict[str, Callable[[Path], object]] = {
    "rows.csv": lambda path: path.write_text("Order ID,größe=cm,n\n007,1.5,1\n"),
    "rows.json": lambda path: path.write_text('[{"Order ID": "007", "größe=cm": 1.5, "n": 1}]'),
    "rows.parquet": lambda path: pq.write_table(pa.table({"Order ID": ["007"], "größe=cm": [1.5], "n": [1]}), path),
}
TABLE = pa.schema([("order_id", pa.string()), ("size", pa.float64()), ("n", pa.int64())])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("types", [None, TABLE], ids=["new table", "table"])
def test_columns_have_the_names_and_the_types_of_the_table(name: str, types: pa.Schema | None, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    source = open_source(tmp_path / name, format_of(tmp_path / name), types, ReadOptions(renames=RENAMES))
    assert source.schema == TABLE
    assert [row for piece in source.pieces(0) for row in piece.rows.to_pylist()] == ROWS


def test_only_a_table_says_that_a_renamed_number_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("Order ID\n7\n")
    reading = ReadOptions(renames=RENAMES[:1])
    kinds = [open_source(tmp_path / "rows.csv", "csv", types, reading).schema.types for types in (None, TABLE)]
    assert kinds == [[pa.int64()], [pa.string()]]


@pytest.mark.parametrize(
    ("renames", "words", "fix"),
    [((("order id", "x"),), "no column 'order id'", "Order ID"), ((("n", "Order ID"),), "two columns 'Order ID'", "--rename")],
)
def test_a_name_that_is_not_there_or_would_be_there_twice_is_refused(
    renames: tuple[tuple[str, str], ...], words: str, fix: str, tmp_path: Path
) -> None:
    FILES["rows.csv"](tmp_path / "rows.csv")
    with pytest.raises(CommandError, match=words) as refused:
        open_source(tmp_path / "rows.csv", "csv", None, ReadOptions(renames=renames))
    assert fix in refused.value.fix


def test_a_name_that_no_table_has_is_refused_with_the_option_that_gives_another(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("Order ID,größe,2024,n\n7,1,2,3\n")
    with pytest.raises(CommandError, match="no column 'Order ID'") as refused:
        schema_of_files([path], None, ReadOptions())
    pairs = [tuple(part.split("=")) for part in re.findall("--rename '([^']*)'", refused.value.fix)]
    assert pairs == [("Order ID", "order_id"), ("größe", "gr_e"), ("2024", "_2024")]
    schema = schema_of_files([path], None, ReadOptions(renames=tuple((old, new) for old, new in pairs)))
    assert schema.names == ["order_id", "gr_e", "_2024", "n"]


@pytest.mark.parametrize(
    ("names", "legal"),
    [
        (["id", ""], ["id", "column"]),
        (["a b", "a.b", "A_B_2", "it's"], ["a_b", "a_b_3", "A_B_2", "it_s"]),
        (["_hoodie_record_key", "id"], ["hoodie_record_key", "id"]),
    ],
    ids=["no name", "alike", "Hudi's own"],
)
def test_the_advised_options_give_every_column_a_name_of_its_own(names: list[str], legal: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table([[1] for _ in names], names=names), path)
    with pytest.raises(CommandError, match="a table has no column") as refused:
        schema_of_files([path], None, ReadOptions())
    read: list[ReadOptions] = []
    command = click.command()(reading_options(lambda reading: read.append(reading)))
    options = shlex.split(refused.value.fix.removeprefix("Give ").partition(", or")[0])
    command.main(options, standalone_mode=False)
    assert schema_of_files([path], None, read[0]).names == legal


def test_of_one_column_with_an_odd_name_a_csv_may_have_another_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,n\na,b\n")
    with pytest.raises(CommandError, match="no column 'id,n'") as refused:
        schema_of_files([path], None, ReadOptions(delimiter=";"))
    assert "--delimiter MARK" in refused.value.fix
