"""`examples/hudi_on_spark.ipynb`, cell by cell: Hudi's SQL changes a table of ours, which is then adopted."""

import os
from pathlib import Path
from typing import Any

import pytest

from support.pages import cells_of
from support.readers import read_by_hudi_rs, read_by_us, without_meta

NAMES = ["id", "day", "at", "status"]
AS_SPARK_LEFT_IT = [(2, "2026-01-01", 20, "returned"), (4, "2026-01-02", 30, "sent"), (5, "2026-01-03", 20, "paid")]


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in without_meta(table).select(NAMES).to_pylist())


def test_sql_of_spark_changes_a_table_and_our_side_refuses_rows_until_it_is_adopted(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark  # the notebook's own call finds it
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(os.environ['HEADGATE_CLUSTER_PYTHON']).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, Any] = {}
    for number, code in enumerate(cells_of("hudi_on_spark.ipynb"), 1):
        exec(compile(code, f"cell {number}", "exec"), names)
        if "MERGE INTO" in code:
            assert rows(read_by_hudi_rs(tmp_path / "orders")) == rows(read_by_us(tmp_path / "orders")) == AS_SPARK_LEFT_IT
        if "ForeignWriterError as" in code:
            assert "adopt" in capsys.readouterr().out
            assert rows(read_by_us(tmp_path / "orders")) == AS_SPARK_LEFT_IT
    expected = [*AS_SPARK_LEFT_IT, (6, "2026-01-03", 40, "paid")]
    by_spark = names["session"].sql("SELECT id, day, at, status FROM orders").collect()
    assert sorted(map(tuple, by_spark)) == rows(read_by_hudi_rs(tmp_path / "orders")) == rows(names["found"]) == expected
    names["session"].sql("DROP VIEW news")
