"""Random tables and calls with compactions in between, against a dictionary and hudi-rs.

``HEADGATE_HYPOTHESIS=long`` tries 40 times as many examples, new ones each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from headgate_tables import hudi
from headgate_tables.face.operation import OperationResult
from support.model import Change, Model, Row
from support.readers import META, read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows, frozen_rows
from support.strategies import Shape, calls_on, effort, new_folder, present, shapes
from support.thresholds import thresholds

LIMITS: list[dict[str, int]] = [
    {},
    {
        "SHARE_ENTRIES": 2,
        "BATCH_ROWS": 2,
        "_WORTH_A_LOOK": 1,
        "_WORTH_A_LOOK_FOR_ALL": 1,
        "_FIRST_ROWS": 3,
        "_ROWS_PER_VALUE": 1,
        "GROUP_ROWS": 3,
        "_SMALL_BYTES": 0,
    },
    {
        "SHARE_KEY_BYTES": 8,
        "_KEPT_KEY_BYTES": 20,
        "BATCH_ROWS": 1,
    },
]
"""As they are, and so small that a few rows have several shares, batches, row groups and dictionaries."""


@pytest.mark.slow
@effort(40)
@given(data=st.data(), shape=shapes(), chosen=st.sampled_from(LIMITS), bloom=st.booleans())
def test_compaction_changes_no_row_and_counts_what_it_did(
    data: st.DataObject, shape: Shape, chosen: dict[str, int], bloom: bool
) -> None:
    with new_folder() as folder, thresholds(chosen):
        path = Path(folder) / "table"
        note(f"{shape.definition()}")
        table = hudi.create_table(str(path), **shape.definition())
        table.configure({"hoodie.parquet.bloom.filter.enabled": str(bloom).lower(), "hoodie.index.bloom.num_entries": "2"})
        model = Model(shape.record_key, shape.partition_by, shape.ordering)
        for _ in range(data.draw(st.integers(1, 3), label="checkpoints")):
            for call in data.draw(st.lists(calls_on(shape, least=1), min_size=1, max_size=4), label="calls"):
                model = model.after([perform(table, shape, call)])
            before = read_by_us(path, meta_columns=True)
            result = table.compact()
            assert not result.dropped
            check_rows(shape, model, path, before)
            for done in result.finished:
                check_counts(path, done)
            model = model.compacted()


def perform(table: hudi.Table, shape: Shape, call: tuple[str, list[Row], str]) -> Change:
    kind, rows, form = call
    given_rows = present(shape, rows, shape.named(kind), form)
    table.upsert(given_rows) if kind == "upsert" else table.delete(given_rows)
    return Change("upsert" if kind == "upsert" else "delete", [shape.stored(row) for row in rows])


def check_rows(shape: Shape, model: Model, path: Path, before: Any) -> None:
    """All readers see the model's rows; of the meta columns only the file name has changed."""
    after = read_by_us(path, meta_columns=True)
    expected = shape.expected(model.rows())
    assert_same_rows(without_meta(after), expected, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(path)), expected, "hudi-rs")
    assert frozen_rows(after.drop_columns([META[4]])) == frozen_rows(before.drop_columns([META[4]]))


def check_counts(path: Path, done: OperationResult) -> None:
    """Against the two base files, by their keys and sequence numbers."""
    old, new = versions(path, done, old=True), versions(path, done, old=False)
    assert done.rows == len(new)
    assert done.inserts == len(new.keys() - old.keys())
    assert done.deletes == len(old.keys() - new.keys())
    assert done.updates == sum(old[key] != version for key, version in new.items() if key in old)


def versions(path: Path, done: OperationResult, *, old: bool) -> dict[str, str]:
    """Record key to sequence number of a base file's rows; every row names the file that it is in."""
    operation = done.operation
    if old and operation.base is None:
        return {}
    name = operation.base.name if old and operation.base else operation.output
    rows = pq.read_table(path / operation.at(name)).select(list(META)).to_pylist()
    assert {row[META[4]] for row in rows} <= {name}
    found = {row[META[2]]: row[META[1]] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found
