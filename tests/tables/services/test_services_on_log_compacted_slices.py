"""What our table services make of a slice with a log compaction of another program (fact HF15), after it is adopted."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from support.log_compaction import MARK, LogCompacted
from support.readers import read_by_hudi_rs, read_by_us

EXPECTED = {"updated once": MARK, "updated again": "third"}


def assert_shown(made: LogCompacted, expected: dict[str, str]) -> None:
    """By a new handle of ours and by hudi-rs."""
    for rows in (read_by_us(made.path), read_by_hudi_rs(made.path)):
        assert {row["id"]: row["note"] for row in rows.to_pylist()} == expected
        assert rows.num_rows == len(expected)


@pytest.fixture(params=["", "ts"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> LogCompacted:
    compacted = LogCompacted(tmp_path / "t", request.param)
    compacted.compact_logs()
    with hudi.open_table(str(compacted.path)) as table:
        table.adopt()
    return compacted


@contextlib.contextmanager
def opened(made: LogCompacted) -> Iterator[hudi.Table]:
    with hudi.open_table(str(made.path)) as table:
        yield table
        assert table.verify().ok


def test_a_compaction_takes_the_rows_of_the_log_compaction_and_its_delete(made: LogCompacted) -> None:
    with opened(made) as table:
        done = table.compact()
        assert [len(each.operation.logs) for each in done.finished] == [5]
    assert_shown(made, EXPECTED)
    with opened(made) as table:
        rows = table.scan(mode="read_optimized").to_table()
        assert {row["id"]: row["note"] for row in rows.to_pylist()} == EXPECTED


def test_no_log_that_a_log_compaction_replaces_is_cleaned_before_the_whole_slice(made: LogCompacted) -> None:
    """Without any of them hudi-rs and Spark leave its rows out."""
    with opened(made) as table:
        table.configure({"hoodie.clean.commits.retained": "1", "headgate.clean.min.age": "0"})
        assert table.clean().files == ()
        assert_shown(made, EXPECTED)
        table.compact()
        table.upsert(pa.table({"id": ["later"], "ts": [9], "note": ["later"]}))
        assert len(table.clean().files) == 6
    assert_shown(made, {**EXPECTED, "later": "later"})


def test_a_rescale_takes_each_row_of_a_log_compacted_slice_once(made: LogCompacted) -> None:
    with opened(made) as table:
        table.rescale(4)
    assert_shown(made, EXPECTED)


def test_instants_of_a_log_compaction_and_of_what_it_replaces_are_archived_and_all_rows_stay(made: LogCompacted) -> None:
    with opened(made) as table:
        table.configure({"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"})
        for number in range(4):
            table.upsert(pa.table({"id": ["later"], "ts": [9 + number], "note": [str(number)]}))
        assert len(table.archive().instants) >= 5
    assert_shown(made, {**EXPECTED, "later": "3"})


def test_changes_show_no_row_of_a_log_compaction_as_one_of_its_own(made: LogCompacted) -> None:
    with opened(made) as table:
        commits = table.commits()
        before = max(each.completion for each in commits[:-1])
        assert table.scan(since=before).to_table().num_rows == 0
