"""What readers make of a log compaction (fact HF15). `tests/interop` asks Spark the same."""

from pathlib import Path

import pyarrow as pa
import pytest

from support.log_compaction import MARK, LogCompacted
from support.readers import read_by_hudi_rs, read_by_us


def notes(rows: pa.Table) -> dict[str, str]:
    return {row["id"]: row["note"] for row in rows.to_pylist()}


@pytest.mark.parametrize("ordering", ["", "ts"])
def test_a_log_compaction_is_read_in_place_of_the_logs_it_names_and_where_they_stood(tmp_path: Path, ordering: str) -> None:
    made = LogCompacted(tmp_path / "t", ordering)
    made.compact_logs()
    expected = {"updated once": MARK, "updated again": "third"}
    assert notes(read_by_us(made.path)) == notes(read_by_hudi_rs(made.path)) == expected


@pytest.mark.parametrize("ordering", ["", "ts"])
def test_hudi_rs_needs_one_of_the_replaced_logs_beside_a_log_compaction(tmp_path: Path, ordering: str) -> None:
    """Without any it leaves the rows and deletes of the log compaction out, and no error says so."""
    made = LogCompacted(tmp_path / "t", ordering)
    made.compact_logs()
    made.remove(0)
    assert notes(read_by_hudi_rs(made.path)) == {"updated once": MARK, "updated again": "third"}
    made.remove(1)
    assert notes(read_by_hudi_rs(made.path)) == {"updated once": "base", "updated again": "third", "deleted": "base"}
