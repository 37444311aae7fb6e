"""What commands refuse before anything is done, and what they advise then."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_port
from headgate.acks import Acks
from headgate.errors import NotCommittedError, UnavailableError
from headgate.shared_channel import _KEPT
from headgate_cli.exits import ExitCode
from headgate_cli.failures import describe_error
from headgate_cli.logged import warnings_printed
from headgate_cli.main import run
from headgate_cli.options import BUCKETS
from headgate_cli.output import Output
from headgate_tables.hudi.definition import MAX_BUCKETS


@pytest.mark.parametrize("store", ["ftp://x", "s3://"])
def test_a_cluster_of_a_store_that_cannot_be_is_refused_before_any_process_starts(
    store: str, headgate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, events, error = headgate("dev", "--store", store)
    assert (code, events, error["kind"]) == (ExitCode.FIX_CALL, [], "OptionError")
    assert store in error["message"]
    assert not any(tmp_path.iterdir())


def test_stderr_has_the_error_alone_with_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_TOKEN", "bad")
    assert run(["table", "list", "--json", "--timeout", "1", "--connect", f"127.0.0.1:{free_port()}"]) == ExitCode.RETRY_LATER
    error = json.loads(capsys.readouterr().err)
    assert "nothing listens there" in error["error"]["message"]
    assert "Start one with `headgate dev`" in error["error"]["fix"]


def test_a_warning_of_the_sdk_speaks_of_options(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings_printed(Output(json=False)):
        logging.getLogger("headgate").warning("Name the file: tls=headgate.Tls(ca=...).")
    assert capsys.readouterr().err == "headgate: Name the file: --tls-ca FILE.\n"
    with warnings_printed(Output(json=True)):
        logging.getLogger("headgate").warning("said to people")
    logging.getLogger("headgate").warning("said outside")
    assert not capsys.readouterr().err


def test_a_cluster_that_answers_is_not_to_be_started() -> None:
    failure = describe_error(UnavailableError("localhost:1: the server closes the connection", fix="Name the file."))
    assert failure is not None
    assert failure.fix == "Name the file."


def test_rows_that_were_not_committed_in_time_are_a_break_and_not_nothing_done() -> None:
    error = NotCommittedError("rows are not queryable", fix=f"Wait. {_KEPT}", offset=9, level="queryable", acks=Acks())
    failure = describe_error(error)
    assert failure is not None
    assert (failure.code, failure.kind) == (ExitCode.REOPEN, "NotCommittedError")
    assert failure.fix == "Wait. Run the same command again: it continues after the rows that are committed."


def test_an_empty_token_file_is_not_a_token_that_was_left_out(headgate: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    code, _, error = headgate("table", "list", "--token-file", str(tmp_path / "token"))
    assert (code, "the file is empty" in error["message"]) == (ExitCode.USAGE, True)


def test_too_many_buckets_are_refused_by_the_name_of_the_option(headgate: Any) -> None:
    code, _, error = headgate("table", "create", "t", "--like", "t.csv", "--key", "id", "--buckets", "100000000")
    assert code == ExitCode.USAGE
    assert "'--buckets'" in error["message"]
    assert "1<=x<=99999999" in error["message"]
    assert BUCKETS.max == MAX_BUCKETS
