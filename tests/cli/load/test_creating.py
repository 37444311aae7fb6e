"""`headgate load --create` of a table that is there: its options agree with it, or the load is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate as hg
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.load.creating import check_definition
from headgate_cli.load.loading import LoadOptions

TABLE = hg.TableInfo(
    "sales", pa.schema([("id", pa.int64())]), ("id",), ("day", "shop"), "at", 4, False, "file:///sales", "uuid", table_version=8
)
GIVEN: LoadOptions = {
    "kind": None,
    "dry_run": False,
    "operation_column": "",
    "delete": False,
    "channel": "",
    "appended": False,
    "again": False,
    "create": True,
    "key": "id",
    "ordering": "",
    "partition_by": "",
    "buckets": None,
}


def test_options_that_agree_with_the_table_pass_and_what_is_not_given_too() -> None:
    check_definition(TABLE, GIVEN)
    check_definition(TABLE, GIVEN | {"ordering": "at", "partition_by": "day, shop", "buckets": 4})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "id,day"}, "--key is id, not id,day"),
        ({"ordering": "day"}, "--ordering is at, not day"),
        ({"partition_by": "shop,day"}, "--partition-by is day,shop, not shop,day"),
        ({"buckets": 8}, "--buckets is 4, not 8"),
    ],
)
def test_an_option_that_says_something_else_than_the_table_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandError, match=f"^the table sales exists and differs: {said}$") as refused:
        check_definition(TABLE, {**GIVEN, **given})  # type: ignore[typeddict-item] # names of a case
    assert refused.value.code == ExitCode.FIX_CALL


def test_a_table_without_an_ordering_column_is_said_to_have_none() -> None:
    with pytest.raises(CommandError, match=r"--ordering is none, not at$"):
        check_definition(replace(TABLE, ordering=None), GIVEN | {"ordering": "at"})


@pytest.mark.usefixtures("connected")
def test_a_load_and_its_dry_run_refuse_it_and_leave_the_table(headgate: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,n\na,1\n")
    load = ("load", str(path), "--table", "created", "--create", "--key", "id", "--buckets", "2")
    assert headgate(*load)[0] == ExitCode.OK
    assert headgate(*load, "--again")[0] == ExitCode.OK
    for more in ([], ["--dry-run"]):
        code, _, error = headgate(*load[:-1], "3", "--again", *more)
        assert (code, error["message"]) == (
            ExitCode.FIX_CALL,
            "the table created exists and differs: --buckets is 2, not 3",
        )
