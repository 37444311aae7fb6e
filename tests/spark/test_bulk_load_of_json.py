"""`headgate bulk-load` of JSON by real Spark, whose reader leaves out fields that the table lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_tables import hudi

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("spot", pa.struct([("x", pa.int64())])),
        ("stops", pa.list_(pa.struct([("name", pa.string())]))),
        ("tags", pa.map_(pa.string(), pa.struct([("n", pa.int64())]))),
    ]
)
FULL = {"id": "a", "spot": {"x": 1}, "stops": [{"name": "n"}], "tags": {"k": {"n": 1}, "K": {"n": 2}}}


@pytest.fixture
def url(tmp_path: Path) -> str:
    hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], buckets=1).close()
    return str(tmp_path / "t")


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(
    ("row", "unknown", "fix"),
    [
        ({"id": "b", "more": 1}, "more", 'The columns are id, spot, stops, tags. `headgate table alter {url} --add "more=TYPE"`'),
        ({"id": "b", "more": None}, "more", '--add "more=TYPE"'),
        ({"id": "b", "more": 1, "other": 2}, "more, other", "headgate_spark.bulk_insert"),
        ({"ID": "b"}, "ID", "Did you mean 'id'? "),
        ({"id": "b", "order id": 1}, "order id", "No table has a column 'order id'"),
        (
            {"id": "b", "spot": {"x": 1, "y": 2}},
            "spot.y",
            'The fields of spot are x. `headgate table alter {url} --add "spot.y=TYPE"`',
        ),
        ({"id": "b", "stops": [{"name": "n", "at": 1}]}, "stops.element.at", "The fields of stops.element are name."),
        ({"id": "b", "tags": {"k": {"m": 1}, "l": {"m": 2}}}, "tags.value.m", "The fields of tags.value are n."),
    ],
)
def test_a_field_that_the_table_lacks_is_refused_before_anything_is_loaded(
    headgate: Any, tmp_path: Path, url: str, row: dict[str, Any], unknown: str, fix: str
) -> None:
    files = [write(tmp_path / "full.json", FULL), write(tmp_path / "rows.json", FULL, row)]
    for plan_only in (["--plan-only"], []):
        code, events, error = headgate("bulk-load", *files, "--table", url, *plan_only)
        assert (code, events, error["kind"]) == (ExitCode.FIX_CALL, {}, "SchemaError")
        assert error["message"] == f"the columns are not the table's (unknown: {unknown})"
        assert fix.format(url=url) in error["fix"]
    assert hudi.open_table(url).commits() == []


def test_rows_with_fewer_fields_and_with_any_keys_in_maps_are_loaded(headgate: Any, spark: Any, tmp_path: Path, url: str) -> None:
    case = spark.conf.get("spark.sql.caseSensitive")
    source = write(tmp_path / "rows.json", FULL, {"id": "b", "stops": []})
    assert headgate("bulk-load", source, "--table", url)[::2] == (ExitCode.OK, {})
    assert spark.conf.get("spark.sql.caseSensitive") == case
    found = hudi.open_table(url).scan(SCHEMA.names).to_table().to_pylist()
    assert sorted(found, key=lambda row: str(row["id"])) == [
        {**FULL, "tags": [("k", {"n": 1}), ("K", {"n": 2})]},
        {"id": "b", "spot": None, "stops": [], "tags": None},
    ]


def test_the_share_of_the_rows_that_is_searched_for_fields_can_be_chosen(headgate: Any, tmp_path: Path, url: str) -> None:
    source = write(tmp_path / "rows.json", {"id": "a", "more": 1})
    arguments = ["bulk-load", source, "--table", url, "--option", "samplingRatio=1e-9"]
    assert headgate(*arguments)[::2] == (ExitCode.OK, {})
    assert hudi.open_table(url).scan(["id"]).to_table().to_pylist() == [{"id": "a"}]


@pytest.mark.parametrize("line", ['{"id": ', '{"id": "b", "spot": 1}', '{"id": "b", "spot": {"x": "no number"}}'])
def test_what_is_no_row_of_the_table_stops_the_load(headgate: Any, tmp_path: Path, url: str, line: str) -> None:
    source = tmp_path / "rows.json"
    source.write_text(f"{json.dumps(FULL)}\n{line}\n")
    code, _, error = headgate("bulk-load", str(source), "--table", url)
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "SparkFailed")
    assert hudi.open_table(url).commits() == []


def test_a_folder_without_files_has_no_fields(headgate: Any, tmp_path: Path, url: str) -> None:
    (tmp_path / "none").mkdir()
    code, events, _ = headgate("bulk-load", str(tmp_path / "none"), "--format", "json", "--table", url, "--plan-only")
    assert (code, events["planned"][0]["files"]) == (ExitCode.OK, 0)
