"""`headgate table drop` on an address: it asks, deletes, names what stays, and finishes what broke off."""

import io
import json
from pathlib import Path

import pytest

from headgate_cli.main import run
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.system import System
from support.faults import FailingStore, Fault, KilledError
from support.handles import open_on
from support.tables import create, rows

Said = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with create(tmp_path) as table:
        table.upsert(rows(("a", 1, "a"), ("b", 1, "b")))
    (tmp_path / "table/README").write_text("of somebody else")
    return tmp_path / "table"


class Terminal(io.StringIO):
    """Where somebody types."""

    def isatty(self) -> bool:
        return True


def is_there(folder: Path) -> bool:
    return (folder / ".hoodie").exists()


def test_a_plan_says_what_would_go_and_deletes_nothing(folder: Path, capsys: Said) -> None:
    assert run(["table", "drop", str(folder), "--plan-only"]) == 0
    said = capsys.readouterr().out
    assert "Would be deleted: 2 data files, " in said
    assert "left where they are: README (1 in all)" in said
    assert is_there(folder)


def test_without_yes_the_name_has_to_be_given_and_with_json_nobody_is_asked(
    folder: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["table", "drop", str(folder), "--json"]) == 2
    assert "--yes" in capsys.readouterr().err
    for answer, code in (("flights", 2), ("", 130), (str(folder), 0)):
        assert is_there(folder)
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n" if answer else ""))
        assert run(["table", "drop", str(folder)]) == code
        assert "2 data files" in capsys.readouterr().err
    assert not is_there(folder)


def test_where_nobody_can_be_asked_nothing_goes_without_yes(folder: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{folder}\n"))
    assert run(["table", "drop", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "2 data files" in said
    assert "Add --yes" in said
    assert is_there(folder)


def test_json_says_what_was_deleted_and_a_second_time_that_it_is_done(folder: Path, capsys: Said) -> None:
    assert run(["table", "drop", str(folder), "--yes", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["files"], done["left"], done["left_count"]) == (2, ["README"], 1)
    assert done["dropped_ms"] > 0
    assert run(["table", "drop", str(folder), "--yes", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["files"], again["dropped_ms"]) == (0, done["dropped_ms"])


def test_a_drop_that_broke_off_is_finished_without_a_question(folder: Path, capsys: Said) -> None:
    store = FailingStore(folder, System.real().ids, anchor=LOG_LAYOUT.root)
    table = open_on(store)
    table.own()
    store.fault = Fault(12, KilledError)
    with pytest.raises(KilledError):
        table.drop()
    assert is_there(folder)
    assert run(["table", "drop", str(folder), "--plan-only"]) == 3
    assert is_there(folder)
    assert run(["table", "drop", str(folder)]) == 0
    assert "is dropped" in capsys.readouterr().out
    assert not is_there(folder)
