"""What the format keeps in slots: a definition, operations, slices that are not compacted. Whole, or refused with the key."""

from dataclasses import replace
from pathlib import Path

import pytest

from headgate_tables.commitlog.fields import Json
from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.face.operation import Operation, PinnedFile
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.services.stuck import StuckSlice
from headgate_tables.hudi.services.table_context import read_operation
from support.tables import create

OPERATION = Operation("p", "f-0", PinnedFile("base", 1), (PinnedFile("log", 2),), "out")
STUCK = StuckSlice("p", "f-0", "its log is damaged", 2, 7, aside=True)


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Json]:
    definition = create(tmp_path).definition
    assert definition is not None
    return definition.encode()


def test_a_definition_without_a_key_is_damaged(config: dict[str, Json]) -> None:
    Definition.decode(config)
    for key in config:
        rest = {name: value for name, value in config.items() if name != key}
        with pytest.raises(CorruptFileError, match=f"the table's CONFIG slot is damaged: its key '{key}' is missing"):
            Definition.decode(rest)


def test_a_definition_with_a_value_of_another_type_is_damaged(config: dict[str, Json]) -> None:
    for key in config:
        with pytest.raises(CorruptFileError, match=f"its key '{key}' (does not hold|holds neither)"):
            Definition.decode({**config, key: {"of another": 1}})


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("schema", "x", "does not hold base64"),
        ("schema", "bm9uZQ==", "holds no Arrow schema"),
        ("table_uuid", "x", "does not hold a UUID"),
        ("groups", {"p": {"one": "id"}}, "'groups.p' holds something other than buckets"),
    ],
)
def test_a_definition_with_an_invalid_value_is_reported_as_damage(
    config: dict[str, Json], key: str, value: Json, why: str
) -> None:
    with pytest.raises(CorruptFileError, match=why):
        Definition.decode({**config, key: value})


def test_a_definition_with_a_key_that_is_not_known_is_of_a_newer_version(config: dict[str, Json]) -> None:
    with pytest.raises(UnsupportedTableError, match="its key 'hash' is not known to this version"):
        Definition.decode({**config, "hash": "of tomorrow"})


def test_an_operation_is_read_as_it_was_written() -> None:
    for operation in (OPERATION, Operation("", "f-0", None, (), "out"), replace(OPERATION, merged_log=".log")):
        assert Operation.decode(operation.encode()) == operation


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        ["p", "f-0", None, []],
        ["p", "f-0", None, [], "out", ".log", "more"],
        ["p", "f-0", None, [], "out", 1],
        ["p", "f-0", ["base"], [], "out"],
        ["p", "f-0", None, [["log", "2"]], "out"],
        [1, "f-0", None, [], "out"],
    ],
)
def test_an_operation_that_cannot_be_read_is_reported_as_damage(content: Json) -> None:
    with pytest.raises(CorruptFileError, match="a PLAN slot holds an operation that cannot be read"):
        Operation.decode(content)


@pytest.mark.parametrize("output", ["no base file", "f-0_0-0-0_20260101000000001.parquet", "f-1_0-0-0_20260101000000000.parquet"])
def test_an_operation_that_would_write_what_no_reader_takes_for_its_output_is_reported_as_damage(output: str) -> None:
    with pytest.raises(CorruptFileError, match=f"the plan of 20260101000000000 would write '{output}'"):
        read_operation(["p", "f-0", None, [], output], "20260101000000000")


def test_the_record_of_a_stuck_slice_is_read_as_it_was_written_or_refused() -> None:
    entry = STUCK.encode()
    assert StuckSlice.decode(entry) == STUCK
    for key in entry:
        with pytest.raises(CorruptFileError, match=f"its key '{key}' is missing"):
            StuckSlice.decode({name: value for name, value in entry.items() if name != key})
    with pytest.raises(CorruptFileError, match="its key 'more' is not known"):
        StuckSlice.decode({**entry, "more": 1})
    assert "without" not in entry, "versions that do not know the key read it"
    accepted = replace(STUCK, without=("a.log", "b.log"))
    assert StuckSlice.decode(accepted.encode()) == accepted
