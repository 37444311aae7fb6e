"""Rows as Python has them, to be shown: what Python lacks, such as the year 10000, is text, as in JSON."""

import json

import pyarrow as pa

from headgate_cli.table.json_lines import json_lines
from headgate_tables.arrow import Array


def python_rows(batch: pa.RecordBatch) -> list[dict[str, object]]:
    """The rows by their columns' names. A column with a value that Python lacks has the values of ``--json``, all of them."""
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*map(python_values, batch.columns), strict=True)]


def python_values(column: Array) -> list[object]:
    """The values of a column, or those of ``--json`` where Python lacks one of them."""
    try:
        found: list[object] = column.to_pylist()
    except (OverflowError, ValueError):
        lines = json_lines(pa.record_batch({"value": column}))
        found = [json.loads(line)["value"] for line in lines.splitlines()]
    return found
