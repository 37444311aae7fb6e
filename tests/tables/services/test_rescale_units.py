"""Units of a rescale that other processes rewrite (rules FI3, FI6): twice, wrongly, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.rescaling import RescaleJob, RescaleUnit
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.system import System
from headgate_tables.writing import rescale_unit
from support.faults import FailingStore, InPlaceStore
from support.handles import open_on
from support.oracle import Oracle, Row
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
ROWS: list[Row] = [{"id": f"k{i * 7 % 300}", "ts": i, "v": i} for i in range(600)]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of four buckets, with base and log files."""
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], ordering="ts", buckets=4) as table:
        table.upsert(arrow(ROWS[:200]))
        table.compact()
        table.upsert(arrow(ROWS[200:]))
    return tmp_path / "t"


def assert_holds_all(folder: Path, buckets: int) -> None:
    oracle = Oracle(["id"], [], "ts")
    oracle.upsert(ROWS)
    rows = arrow(oracle.rows())
    assert_same_rows(read_by_us(folder), rows, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(folder)), rows, "hudi-rs")
    with hudi.open_table(str(folder)) as table:
        assert not table.verify().findings
        assert table.definition is not None
        assert table.definition.buckets == buckets


def stored(folder: Path, kind: type[FailingStore]) -> FailingStore:
    return kind(folder, System.real().ids, anchor=LOG_LAYOUT.root)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FailingStore, InPlaceStore])
@pytest.mark.parametrize("after", [2, 36])
def test_a_unit_that_is_rewritten_twice_reports_the_files_of_the_first_run(
    folder: Path, kind: type[FailingStore], after: int
) -> None:
    def twice(job: RescaleJob, units: Sequence[RescaleUnit]) -> Iterator[list[WriteStatus]]:
        for unit in units:
            first = rescale_unit(stored(folder, kind), job, unit)
            again = rescale_unit(stored(folder, kind), job, RescaleUnit.decode(unit.encode()))
            assert again == first
            yield again

    with open_on(stored(folder, kind)) as table:
        done = table.rescale(after, run=twice)
        assert (done.units, done.files) == ({2: 2, 36: 4}[after], after)
    assert_holds_all(folder, after)


@pytest.mark.parametrize("kind", [FailingStore, InPlaceStore])
def test_a_file_that_another_unit_has_made_under_the_name_is_refused(folder: Path, kind: type[FailingStore]) -> None:
    def other_before(job: RescaleJob, units: Sequence[RescaleUnit]) -> Iterator[list[WriteStatus]]:
        for unit in units:
            rescale_unit(stored(folder, kind), job, replace(unit, slices=unit.slices[:1]))
            yield rescale_unit(stored(folder, kind), job, unit)

    with open_on(stored(folder, kind)) as table:
        with pytest.raises(CorruptFileError, match="is taken, and not by a file of this rescale"):
            table.rescale(2, run=other_before)
        assert table.rescale(2).files == 2
    assert_holds_all(folder, 2)


def test_a_file_that_is_not_as_it_was_reported_ends_the_rescale(folder: Path) -> None:
    def wrongly(job: RescaleJob, units: Sequence[RescaleUnit]) -> Iterator[list[WriteStatus]]:
        for unit in units:
            statuses = rescale_unit(stored(folder, FailingStore), job, unit)
            yield [replace(each, file=each.file._replace(size=each.file.size + 1)) for each in statuses]

    with hudi.open_table(str(folder)) as table, pytest.raises(CorruptFileError, match=r"a task reported .* wrongly"):
        table.rescale(2, run=wrongly)
    assert_holds_all(folder, 4)


def test_a_task_that_fails_ends_the_rescale_and_leaves_nothing(folder: Path) -> None:
    begun = []

    def half(job: RescaleJob, units: Sequence[RescaleUnit]) -> Iterator[list[WriteStatus]]:
        begun.append(job.instant)
        yield rescale_unit(stored(folder, FailingStore), job, units[0])
        rescale_unit(stored(folder, FailingStore), job, units[1])
        raise CorruptFileError("a task found a damaged file", fix="None.")

    with hudi.open_table(str(folder)) as table, pytest.raises(CorruptFileError, match="a damaged file"):
        table.rescale(2, run=half)
    with hudi.open_table(str(folder), take_over=True) as later:
        later.upsert(arrow(ROWS[-1:]))
    assert [path for path in folder.rglob("*") if begun[0] in path.name] == []
    assert_holds_all(folder, 4)
