"""Options that are durations: one form in all commands, and an error that names the option."""

import json
from pathlib import Path

import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run

CREDENTIALS = ["access", "credentials", "made", "--host", "h"]
SECRETS = ["kubernetes", "credentials", "--name", "n", "--part", "tls", "--dns", "h"]
OPTIONS = [
    (["table", "drop", "t", "--yes"], "--grace"),
    (["table", "rescale", "t", "--buckets", "4"], "--longest-pause"),
    (CREDENTIALS, "--valid"),
    (CREDENTIALS, "--left"),
    (SECRETS, "--valid"),
    (["access", "token", "loader"], "--expires"),
]


@pytest.mark.parametrize(("command", "option"), OPTIONS, ids=lambda part: "" if isinstance(part, list) else part)
@pytest.mark.parametrize("text", ["soon", "90", "", "999999999999d", f"{'9' * 400}d"], ids=lambda text: text[:13])
def test_what_is_no_duration_is_a_wrong_command_line_that_names_the_option(
    command: list[str],
    option: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*command, option, text]) == ExitCode.USAGE
    assert option in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_duration_has_a_unit_and_may_have_a_fraction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["access", "credentials", str(tmp_path / "made"), "--host", "h", "--json", "--left", "1h", "--valid"]
    assert run([*command, "59.5m"]) == ExitCode.USAGE
    assert "--left is not below --valid" in capsys.readouterr().err
    assert run([*command, "60.5m"]) == ExitCode.OK
    assert "tls/tls.crt" in json.loads(capsys.readouterr().out)["made"]


@pytest.mark.parametrize(
    ("command", "option"),
    [each for each in OPTIONS if each[1] != "--expires"],
    ids=lambda part: "" if isinstance(part, list) else part,
)
def test_help_says_that_the_option_wants_a_time(command: list[str], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command[:2], "--help"]) == ExitCode.OK
    assert f"{option} TIME" in " ".join(capsys.readouterr().out.split())
