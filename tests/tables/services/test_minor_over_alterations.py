"""A minor compaction whose first attempt was killed, and over which the table was altered before the second one."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.face.altering import Alteration
from support.minor import SETTINGS, finish, plan_minor, run
from support.tables import by_hudi_rs

SCHEMA = pa.schema([pa.field("id", pa.string(), False), ("ts", pa.int64()), pa.field("note", pa.string(), False)])
WIDER = Alteration(add={"more": pa.int64()})
NULLABLE = Alteration(nullable=["note"])
"""Of which the types of the columns say nothing, and the schema in a log file does."""
SHOWN = {"a": "base a", "b": "newest", "c": "base c"}

altered = pytest.mark.parametrize("alteration", [WIDER, NULLABLE], ids=["wider", "nullable"])


def rows(*entries: tuple[str, int, str]) -> pa.Table:
    ids, times, texts = zip(*entries, strict=True)
    return pa.table([pa.array(ids), pa.array(times), pa.array(texts)], schema=SCHEMA)


@pytest.fixture
def due(tmp_path: Path) -> hudi.Table:
    """A base file and three logs."""
    made = hudi.create_table(str(tmp_path / "table"), schema=SCHEMA, record_key=["id"], ordering="ts", buckets=1)
    made.configure(SETTINGS)
    made.upsert(rows(*((letter, 10, f"base {letter}") for letter in "abc")))
    made.compact()
    for number, text in enumerate(("new", "newer", "newest")):
        made.upsert(rows(("b", 11 + number, text)))
    return made


def shown(table: hudi.Table) -> dict[str, str]:
    return {row["id"]: row["note"] for row in table.scan().to_table().to_pylist()}


@altered
def test_a_second_attempt_finds_the_files_of_the_first(due: hudi.Table, alteration: Alteration) -> None:
    """It was refused, as if they were another program's, until somebody cancelled the plan."""
    planned, _ = plan_minor(due)
    first = run(due, planned)
    due.alter(alteration)
    assert run(due, planned) == first
    finish(due, planned)
    assert shown(due) == SHOWN
    due.compact()
    assert {row["id"]: row["note"] for row in by_hudi_rs(due.url)} == SHOWN
    assert not due.verify().findings


@altered
def test_an_ordinary_compaction_replaces_one_of_which_only_the_log_was_made(due: hudi.Table, alteration: Alteration) -> None:
    planned, operation = plan_minor(due)
    run(due, planned)
    Path(due.url.removeprefix("file://"), operation.path).unlink()
    due.alter(alteration)
    finish(due, planned)
    due.tidy()
    [part] = due.scan().slices()
    assert not part.logs
    assert {row["id"]: row["note"] for row in by_hudi_rs(due.url)} == SHOWN
    assert not due.verify().findings
