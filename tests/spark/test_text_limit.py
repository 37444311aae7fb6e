"""What a task of a load says of more text than Arrow takes in one column; without Spark, and with a lower limit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_spark import text_limit
from headgate_spark.carried import TaskError, carried_by
from headgate_spark.planning import definition_of
from headgate_spark.spread import TASK
from headgate_spark.tasks import Writing
from headgate_spark.text_limit import check_text
from headgate_tables import hudi
from headgate_tables.errors import OptionError
from support.bulk_rows import new_table

DEEP = pa.list_(pa.struct([("by", pa.map_(pa.string(), pa.binary()))]))
SHORT = {"note": "x", "other": "y" * 10, "deep": [{"by": [("k", b"")]}]}


def batch(**values: object) -> pa.RecordBatch:
    schema = pa.schema([("note", pa.string()), ("other", pa.string()), ("number", pa.int64()), ("deep", DEEP)])
    return pa.RecordBatch.from_pylist([{**SHORT, **values}], schema)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(text_limit, "MOST_TEXT_BYTES", 100)
    return 100


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("note", {"note": "x" * 51}),
        ("deep.element.by.value", {"deep": [None, {"by": [("k", b"x" * 51)]}]}),
        ("deep.element.by.key", {"deep": [{"by": [("k" * 51, None)]}]}),
    ],
)
def test_a_column_with_too_much_text_in_all_batches_of_a_task_is_named(limit: int, path: str, values: dict[str, object]) -> None:
    """Each text is shorter than the limit."""
    del limit
    pieces = [batch(**values), batch(), batch(**values)]
    with pytest.raises(OptionError, match=f"more than 2 GiB of text in the column '{path}'.*more `tasks`.*more buckets"):
        check_text(pieces)
    check_text([pa.concat_batches(pieces)[:2], batch(), batch()])


def test_as_much_text_as_the_limit_in_each_of_two_columns_is_written(limit: int) -> None:
    check_text([batch(note="x" * (limit // 2), other="y" * (limit // 2))] * 2)


def test_a_task_finds_it_before_it_writes(limit: int, tmp_path: Path) -> None:
    with hudi.open_table(new_table(tmp_path / "t")) as table:
        task = Writing(table.url, None, definition_of(table), "", 0, "", {}, "into_empty")
    rows = batch(note="x" * (limit + 1)).append_column(TASK, pa.array([0], pa.int32()))
    with pytest.raises(TaskError) as failed:
        list(task.write(iter([rows])))
    assert isinstance(carried_by(failed.value), OptionError)
    assert [each.name for each in tmp_path.glob("t/*") if not each.name.startswith(".")] == []
