"""`headgate load --dry-run` on a table that is there: it says what the load would do, and refuses what it would."""

from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run

pytestmark = [pytest.mark.usefixtures("connected"), pytest.mark.slow]


@pytest.fixture
def orders(headgate: Any, tmp_path: Path) -> str:
    """A table of two rows."""
    path, name = tmp_path / "orders.csv", f"orders_{tmp_path.name}"
    path.write_text("id,price\na,1.5\nb,2.5\n")
    assert headgate("load", str(path), "--table", name, "--create", "--key", "id")[0] == ExitCode.OK
    return name


def test_deletes_are_planned_as_deletes_and_lack_nothing(
    headgate: Any, orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone.csv"
    gone.write_text("id\na\n")
    command = ["load", str(gone), "--table", orders, "--delete", "--dry-run"]
    code, said, _ = headgate(*command)
    plan = {"event": "plan", "table": orders, "exists": True, "operation": "delete", "files": [str(gone)]}
    assert (code, said[-1], [each for each in said if each["event"] == "lacking"]) == (ExitCode.OK, plan, [])
    assert run(command) == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"Would delete the rows of 1 file from {orders}, by their keys. Nothing was changed." in shown
    assert "lacks" not in shown
    assert headgate("table", "scan", orders, "--count")[1] == [{"rows": 2}]
    assert run(["load", str(gone), "--table", "nowhere", "--delete", "--dry-run"]) == ExitCode.OK
    assert "There is no table nowhere, and so no row to delete." in capsys.readouterr().out
    _, said, _ = headgate(*command[:-2], "--dry-run")
    assert [each for each in said if each["event"] == "lacking"] == [
        {"event": "lacking", "file": str(gone), "columns": ["price"]}
    ]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("id,prise\na,1.5\n", [], "unknown: prise"),
        ("price\n1.5\n", [], "missing: id"),
        ("price\n1.5\n", ["--delete"], "missing: id"),
        ("id,price\na,1.5\n", ["--operation-column", "op"], "missing: op"),
    ],
)
def test_columns_that_the_load_refuses_are_refused_and_the_file_is_named(
    headgate: Any, orders: str, tmp_path: Path, text: str, options: list[str], said: str
) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "wrong.csv"
    good.write_text("id,price,op\nc,1.5,upsert\n" if "--operation-column" in options else "id,price\nc,1.5\n")
    bad.write_text(text)
    code, shown, error = headgate("load", str(good), str(bad), "--table", orders, *options, "--dry-run")
    assert (code, shown, error["kind"]) == (ExitCode.FIX_CALL, [], "SchemaError")
    assert error["message"].startswith("wrong.csv: ")
    assert said in error["message"]
    code, _, refused = headgate("load", str(bad), "--table", orders, *options)
    assert (code, said in refused["message"], refused["fix"]) == (ExitCode.FIX_CALL, True, error["fix"])


def test_a_file_may_bring_columns_to_a_table_that_evolves(headgate: Any, orders: str, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("id,price,gate\nc,1.5,A1\n")
    command = ("load", str(more), "--table", orders, "--dry-run")
    assert headgate(*command)[0] == ExitCode.FIX_CALL
    assert headgate("configure", orders, "headgate.evolve=add")[0] == ExitCode.OK
    assert headgate(*command)[0] == ExitCode.OK
    assert headgate("load", str(more), "--table", orders, "--delete", "--dry-run")[0] == ExitCode.OK


def test_a_column_that_no_table_has_is_not_advised_to_be_added(headgate: Any, orders: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.csv"
    path.write_text("id,price,a b\na,1.5,x\n")
    for dry_run in ([], ["--dry-run"]):
        code, _, error = headgate("load", str(path), "--table", orders, *dry_run)
        assert (code, error["fix"]) == (
            ExitCode.FIX_CALL,
            "Give --rename 'a b=a_b', or leave such columns out with --select COLUMN,…",
        )
    assert headgate("load", str(path), "--table", orders, "--delete", "--dry-run")[0] == ExitCode.OK
    assert headgate("load", str(path), "--table", orders, "--operation-column", "a b", "--dry-run")[0] == ExitCode.OK
