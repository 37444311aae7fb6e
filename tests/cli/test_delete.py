"""`headgate table delete` at an address: it counts, shows and asks, deletes in one commit, and says where the bytes still are."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_cli.table.delete import _Address
from headgate_cli.table.erasure import erasure_notes
from headgate_tables import hudi
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.face.settings import TableSettings
from support.erased import files_holding
from support.readers import read_by_hudi_rs

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("note", pa.string())])
SECRET = "Wilhelmine-Unverwechselbar"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Rows a to e in days 1 and 2; b, c and d hold the secret, in base and log files, and e has no note."""
    made = hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], partition_by=["day"], buckets=1)
    made.upsert(rows(("a", "1", "x"), ("b", "1", SECRET), ("c", "2", SECRET)))
    made.upsert(rows(("d", "1", f"of {SECRET}"), ("e", "2", None), ("b", "1", f"again {SECRET}")))
    made.close()
    return str(tmp_path / "t")


def rows(*entries: tuple[str, str, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, entry, strict=True)) for entry in entries], SCHEMA)


def left(url: str) -> list[str]:
    ours = sorted(hudi.open_table(url).scan(["id"]).to_table()["id"].to_pylist())
    assert sorted(read_by_hudi_rs(Path(url))["id"].to_pylist()) == ours
    return ours


class Terminal(io.StringIO):
    """Where somebody types."""

    def isatty(self) -> bool:
        return True


def test_a_dry_run_counts_shows_and_changes_nothing(headgate: Any, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["table", "delete", url, "--where", f"note LIKE '%{SECRET}%'", "--dry-run"]
    code, (found,), _ = headgate(*command)
    assert (code, found["rows"]) == (ExitCode.OK, 3)
    assert found["partitions"] == [{"partition": "1", "rows": 2}, {"partition": "2", "rows": 1}]
    assert sorted(each["id"] for each in found["sample"]) == ["b", "c", "d"]
    assert run(command) == ExitCode.OK
    said = capsys.readouterr().out
    assert "3 rows in 2 partitions would be deleted." in said
    assert f"again {SECRET}" in said
    assert left(url) == ["a", "b", "c", "d", "e"]


def test_ten_rows_are_a_sample(headgate: Any, tmp_path: Path) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key=["id"], buckets=1) as made:
        made.upsert(rows(*((str(number), "1", "x") for number in range(30))))
    _, (found,), _ = headgate("table", "delete", str(tmp_path / "t"), "--where", "note = 'x'", "--dry-run")
    assert (found["rows"], found["partitions"], len(found["sample"])) == (30, [{"partition": "", "rows": 30}], 10)


def test_it_asks_with_the_count_and_yes_deletes(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["table", "delete", url, "--where", "day = '1' AND note <> 'x'"]
    assert run([*command, "--json"]) == ExitCode.USAGE
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(command) == ExitCode.USAGE, "nobody is there"
    assert "2 rows in 1 partition of" in capsys.readouterr().err
    for answer, code in (("n\n", ExitCode.INTERRUPTED), ("y\n", ExitCode.OK)):
        assert left(url) == ["a", "b", "c", "d", "e"]
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert run(command) == code
        assert "Delete 2 rows in 1 partition" in capsys.readouterr().err
    assert left(url) == ["a", "c", "e"]


def test_rows_for_which_the_condition_is_null_stay(headgate: Any, url: str) -> None:
    code, (done,), _ = headgate("table", "delete", url, "--where", "NOT note = 'x'", "--yes")
    assert (code, done["rows"], done["partitions"]) == (
        ExitCode.OK,
        3,
        [{"partition": "1", "rows": 2}, {"partition": "2", "rows": 1}],
    )
    assert done["instant"] == hudi.open_table(url).commits()[-1].instant
    assert left(url) == ["a", "e"]
    code, (done,), _ = headgate("table", "delete", url, "--where", "NOT note = 'x'", "--yes")
    assert (code, done["rows"], done["instant"]) == (ExitCode.OK, 0, "")


@pytest.mark.parametrize(("where", "deleted"), [("note = 'x'", 1), ("note = 'nobody'", 0)])
def test_what_was_deleted_is_told_when_the_table_cannot_be_read_again(
    where: str, deleted: int, headgate: Any, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object) -> None:
        raise StoreUnavailableError("the store does not answer", fix="Try again.")

    monkeypatch.setattr(_Address, "location", gone)
    code, (done,), error = headgate("table", "delete", url, "--where", where, "--yes")
    assert (code, done["rows"], done["savepoints"], error) == (ExitCode.OK, deleted, None, {})
    assert len(left(url)) == 5 - deleted
    assert run(["table", "delete", url, "--where", "id = 'e'", "--yes"]) == ExitCode.OK
    said = capsys.readouterr()
    assert "1 row in 1 partition deleted" in said.out
    assert "the store does not answer" in said.err


def test_an_interrupt_while_the_table_is_read_again_leaves_the_record(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Address, "location", interrupted)
    assert run(["table", "delete", url, "--where", "note = 'x'", "--yes", "--json"]) == ExitCode.INTERRUPTED
    done = json.loads(capsys.readouterr().out)
    assert (done["rows"], done["savepoints"]) == (1, None)


def test_a_wrong_condition_names_the_column_that_is_meant(headgate: Any, url: str) -> None:
    for also in ("--dry-run", "--yes"):
        code, said, error = headgate("table", "delete", url, "--where", "noet = 'x'", also)
        assert (code, said, error["kind"]) == (ExitCode.FIX_CALL, [], "SchemaError")
        assert "Did you mean 'note'" in error["fix"]
    assert headgate("table", "delete", url, "--yes")[0] == ExitCode.USAGE, "without a condition nothing is deleted"
    assert left(url) == ["a", "b", "c", "d", "e"]


def test_a_table_of_a_cluster_is_deleted_from_by_name_or_taken_over(headgate: Any, url: str) -> None:
    with hudi.open_table(url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
        cluster.own()
    command = ["table", "delete", url, "--where", "id = 'a'"]
    assert headgate(*command, "--dry-run")[1][0]["rows"] == 1, "to count owns nothing"
    code, _, error = headgate(*command, "--yes")
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "TableOwnedError")
    assert "Give its name (t) instead of its address" in error["fix"]
    assert left(url) == ["a", "b", "c", "d", "e"]
    assert headgate(*command, "--yes", "--take-over")[0] == ExitCode.OK
    assert left(url) == ["b", "c", "d", "e"]


@pytest.mark.parametrize("wrong", [["./t", "--channel", "c"], ["t", "--take-over"]], ids=" ".join)
def test_options_of_the_other_way_are_refused(headgate: Any, wrong: list[str]) -> None:
    code, _, error = headgate("table", "delete", *wrong, "--where", "id = 'a'", "--yes")
    assert (code, wrong[1] in error["message"]) == (ExitCode.USAGE, True)


def test_after_the_commands_that_it_names_no_file_has_the_bytes(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name for name in files_holding(Path(url), SECRET) if not name.startswith(".hoodie")}
    assert len(before) == 3, "two base files and a log file"
    with hudi.open_table(url) as table:
        saved = table.savepoint("before")
    assert run(["table", "delete", url, "--where", f"note LIKE '%{SECRET}%'", "--yes"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert f"headgate compact {url}, then headgate clean {url}" in said
    assert f"Savepoints keep them: {saved}" in said
    assert before <= {*files_holding(Path(url), SECRET)}, "readers see no row, and the bytes are there"
    for command in (
        ["savepoint", url, "--remove", saved],
        ["compact", url],
        ["configure", url, "hoodie.clean.commits.retained=1", "headgate.clean.min.age=0"],
        ["clean", url],
        ["configure", url, "--unset", "hoodie.clean.commits.retained", "--unset", "headgate.clean.min.age"],
    ):
        assert run(command) == ExitCode.OK
    assert files_holding(Path(url), SECRET) == []
    assert left(url) == ["a", "e"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "within 3,600 s, or after 28 commits to a file slice, and at the earliest 600 s later; what the last 10 commits"),
        ({"hoodie.clean.automatic": "false"}, "never cleaned (hoodie.clean.automatic=false)"),
        ({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}, "the files of the last 24 hours are kept"),
        ({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}, "3 file slices of each file group are kept"),
        ({"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS"}, "after 28 commits to a file slice, and"),
        ({"hoodie.compact.inline.trigger.strategy": "NUM_AND_TIME"}, "after 28 commits to a file slice and 3,600 s, and"),
        ({"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}, "that is within 3,600 s, and"),
    ],
)
def test_how_long_bytes_stay_is_what_the_settings_say(settings: dict[str, str], said: str) -> None:
    notes = erasure_notes("t", TableSettings.from_texts(settings), [], in_cluster=True)
    assert said in " ".join(notes)
    assert not any("avepoint" in note for note in notes)
