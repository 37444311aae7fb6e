"""`headgate table delete-partitions` and `truncate`, on a table without a cluster, and what `bulk-load` says where there is no
Spark.
"""

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.main import run
from headgate_cli.table.location import open_unowned
from headgate_cli.table.storage import Location
from headgate_tables import hudi

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string())])


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Three rows in day 1, one of them in a log file; one in day 2."""
    made = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["day"], buckets=2)
    made.upsert(pa.table({"id": ["a", "b", "c"], "day": ["1", "1", "2"]}, schema=SCHEMA))
    made.upsert(pa.table({"id": ["a", "d"], "day": ["1", "1"]}, schema=SCHEMA))
    made.close()
    return str(tmp_path / "t")


def left(url: str) -> list[str]:
    return sorted(hudi.open_table(url).scan(["id"]).to_table()["id"].to_pylist())


def test_rows_are_counted_and_then_removed_when_somebody_says_yes(headgate: Any, url: str) -> None:
    command = ["table", "delete-partitions", url, "1"]
    assert headgate(*command, "--plan-only") == (ExitCode.OK, [{"partitions": ["1"], "rows": 3}], {})
    code, said, error = headgate(*command)
    assert (code, said, error["fix"]) == (ExitCode.USAGE, [], "Add --yes.")
    assert left(url) == ["a", "b", "c", "d"]
    code, (done,), _ = headgate(*command, "1/", "--yes")
    assert (code, done["partitions"], done["rows"], done["replaced"]) == (ExitCode.OK, ["1"], 3, 2)
    assert done["instant"] == hudi.open_table(url).commits()[-1].instant
    assert left(url) == ["c"]


def test_an_answer_other_than_yes_changes_nothing(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run(["table", "delete-partitions", url, "1", "2"]) == ExitCode.INTERRUPTED
    assert "Remove 4 rows" in capsys.readouterr().err
    assert left(url) == ["a", "b", "c", "d"]


def test_a_yes_from_a_pipe_counts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(["table", "delete-partitions", url, "1"]) == ExitCode.OK
    assert left(url) == ["c"]


@pytest.mark.parametrize(("command", "partitions"), [("truncate", []), ("delete-partitions", ["1"])])
def test_where_nobody_answers_nothing_is_removed_and_yes_is_what_helps(
    command: str, partitions: list[str], url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["table", command, url, *partitions]) == ExitCode.USAGE
    assert capsys.readouterr().err.endswith("headgate: nobody answered\n  Add --yes.\n")
    assert left(url) == ["a", "b", "c", "d"]


def test_a_table_is_truncated_when_somebody_says_yes(headgate: Any, url: str) -> None:
    assert headgate("table", "truncate", url, "--plan-only") == (ExitCode.OK, [{"partitions": [], "rows": 4}], {})
    code, _, error = headgate("table", "truncate", url)
    assert (code, error["fix"], "Remove 4 rows" in error["message"]) == (ExitCode.USAGE, "Add --yes.", True)
    code, (done,), _ = headgate("table", "truncate", url, "--yes")
    assert (code, done["rows"], done["replaced"], left(url)) == (ExitCode.OK, 4, 3, [])


@pytest.mark.parametrize("also", [["--plan-only"], ["--yes"]])
def test_an_unknown_partition_is_refused_before_anything_is_removed(headgate: Any, url: str, also: list[str]) -> None:
    code, said, error = headgate("table", "delete-partitions", url, "1", "7", *also)
    assert (code, said, error["kind"]) == (ExitCode.FIX_CALL, [], "OptionError")
    assert "'7'" in error["message"]
    assert left(url) == ["a", "b", "c", "d"]


def test_a_table_of_a_cluster_is_taken_over_only_on_request(headgate: Any, url: str) -> None:
    with hudi.open_table(url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
        cluster.own()
    code, _, error = headgate("table", "delete-partitions", url, "1", "--yes")
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "TableOwnedError")
    assert "host:7070" in error["message"]
    assert "--take-over" in error["fix"]
    assert headgate("table", "delete-partitions", url, "1", "--yes", "--take-over")[0] == ExitCode.OK
    assert left(url) == ["c"]


def test_a_cluster_that_takes_the_table_back_has_to_be_ended_first(url: str) -> None:
    """To run the command again, as after other takeovers, would end the same way."""

    def work() -> None:
        with open_unowned(Location(url), take_over=True) as table:
            table.own()
            with hudi.open_table(url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
                cluster.own()
            table.delete_partitions(["1"])

    with pytest.raises(CommandError) as refused:
        work()
    assert (refused.value.code, refused.value.kind) == (ExitCode.OPERATOR, "DeposedError")
    assert "host:7070" in refused.value.message
    assert "End its coordinators" in refused.value.fix
    assert left(url) == ["a", "b", "c", "d"]


def test_a_bulk_load_without_spark_names_what_to_install(headgate: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    code, said, error = headgate("bulk-load", "rows.parquet", "--table", url, "--plan-only")
    assert (code, said) == (ExitCode.OPERATOR, [])
    assert "pyspark" in error["message"]
    assert "pip install 'headgate-cli[spark]'" in error["fix"]
