"""What Spark makes of a log compaction (fact HF15); `tests/tables/hudi` asks hudi-rs the same."""

from pathlib import Path
from typing import Any

import pytest

from support.log_compaction import MARK, LogCompacted
from support.spark_hudi import read_by_spark


@pytest.mark.parametrize("ordering", ["", "ts"])
def test_spark_reads_a_log_compaction_as_hudi_rs_does(spark: Any, tmp_path: Path, ordering: str) -> None:
    made = LogCompacted(tmp_path / "t", ordering)

    def read() -> dict[str, str]:
        rows = read_by_spark(spark, made.path).to_pylist()
        return {row["id"]: row["note"] for row in rows}

    made.compact_logs()
    in_its_place = {"updated once": MARK, "updated again": "third"}
    assert read() == in_its_place
    made.remove(0)
    assert read() == in_its_place
    made.remove(1)
    assert read() == {"updated once": "base", "updated again": "third", "deleted": "base"}
