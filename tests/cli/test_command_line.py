"""What the command line itself promises: help that teaches, errors with a next step, exit codes that are documented."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from headgate_cli.dev.certificates import SERVICES, Certificates, Pair
from headgate_cli.dev.credentials import DevCredentials
from headgate_cli.dev.processes import Cluster, redis_process, service_processes
from headgate_cli.dev.redis import Redis
from headgate_cli.dev.restarts import Restarts
from headgate_cli.exits import MEANING, ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.main import run
from headgate_cli.table.schemas import schema_of_file
from support.scripted_service import cluster_in_thread

_PAIR = Pair(Path("a.pem"), Path("a.key"))
_SERVICES = dict.fromkeys(SERVICES, _PAIR)
CREDENTIALS = DevCredentials(Certificates(Path("ca.pem"), _PAIR, _SERVICES), "secret", Path("token"), Path("tokens"))
REDIS = Redis("valkey-server", Path("redis.conf"), Path("redis.sock"), "unix://headgate:secret@redis.sock")
COMMANDS = [
    ["dev"],
    ["load"],
    ["bulk-load"],
    ["bootstrap"],
    ["status"],
    ["verify"],
    *([name] for name in ("compact", "clean", "archive", "savepoint", "restore", "configure")),
    *(["access", name] for name in ("token", "list", "check", "credentials")),
    *(["table", name] for name in ("create", "list", "describe", "timeline", "files", "scan", "adopt", "delete-partitions")),
]


def test_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == ExitCode.OK
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"{code.value} {MEANING[code]}" in said for code in ExitCode)


def test_the_help_of_a_new_table_says_what_becomes_of_times_without_a_zone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "create", "--help"]) == ExitCode.OK
    assert "timestamp_local becomes one in UTC" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_json(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert "--json" in said
    assert re.search(rf"Examples?:\n(.*\n)*? +(\w+=\S+ )*headgate {' '.join(command)}\b", said), said


@pytest.mark.parametrize("arguments", [["nonsense"], ["table", "scan"], ["load", "--table"], ["dev", "--writers", "many"]])
def test_a_wrong_command_line_is_said_as_json_when_json_is_asked_for(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--json"]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert not captured.out
    assert json.loads(captured.err)["error"]["exit_code"] == ExitCode.USAGE


def test_people_get_the_message_an_example_and_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "scan"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "Example: headgate table scan flights --limit 5. See headgate table scan --help." in said


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        (["lod"], "load"),
        (["tabel", "scan"], "table"),
        (["table", "scna", "x"], "scan"),
        (["status", "--wacth"], "--watch"),
        (["table", "scan", "x", "--colums", "id"], "--columns"),
        (["load", "x.csv", "--tabel=y"], "--table"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_name_that_was_probably_meant_is_said(wrong: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*wrong, "--json"]) == ExitCode.USAGE
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["fix"].startswith(f"Did you mean '{meant}'? See headgate ")
    assert "Did you mean" not in error["message"], "click guesses, too"


@pytest.mark.parametrize(
    "wrong", [["nonsense"], ["coat"], ["table", "x"], ["status", "--port"], ["table", "scan", "x", "--sort"]]
)
def test_what_is_near_nothing_gets_no_guess(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(wrong) == ExitCode.USAGE
    assert "id you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        ["--token", "hunter2"],
        ["--token=hunter2"],
        ["--storage", "secret_access_key=hunter2"],
        ["--storage=AZURE_STORAGE_ACCOUNT_KEY=hunter2"],
        ["--storage", "endpoint=http://user:hunter2@localhost:1"],
        ["--storage", "hunter2"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("style", [[], ["--json"]], ids=["people", "json"])
def test_a_secret_is_no_option_and_the_refusal_does_not_repeat_it(
    option: list[str], style: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every user of the machine can read options of commands."""
    assert run(["verify", "file:///nowhere", *option, *style]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert option[0].partition("=")[0] in captured.err
    assert "hunter2" not in captured.out + captured.err


def test_a_token_that_cannot_be_sent_is_refused_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "token").write_text("hunter2\nhunter3\n")
    assert run(["table", "list", "--token-file", str(file)]) == ExitCode.USAGE
    monkeypatch.setenv("HEADGATE_TOKEN", "hunter2 hunter3")
    assert run(["table", "list"]) == ExitCode.USAGE
    assert "hunter" not in capsys.readouterr().err
    with pytest.raises(headgate.InvalidArgumentError) as refused:
        headgate.connect("localhost:1", token="hunter2\n")
    assert "hunter2" not in str(refused.value)


def test_a_cluster_that_is_not_there_is_a_reason_to_try_later(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "list", "--connect", "localhost:1", "--timeout", "0.2", "--json"]) == ExitCode.RETRY_LATER
    assert "headgate dev" in json.loads(capsys.readouterr().err)["error"]["fix"]


def test_tables_and_those_that_cannot_be_read_are_asked_for_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_in_thread() as cluster:
        with headgate.connect(cluster.coordinator) as hg:
            for name in ("a", "b"):
                hg.create_table(name, [("id", int)], key="id")
        cluster.unreadable = ["gone"]
        assert run(["table", "list", "--connect", cluster.coordinator, "--json"]) == ExitCode.OK
        said = capsys.readouterr()
        assert [json.loads(line)["name"] for line in said.out.splitlines()] == ["a", "b"]
        assert json.loads(said.err) == {"unreadable": ["gone"]}
        assert cluster.listings == 1


def test_waiting_doubles_up_to_five_seconds_and_begins_anew_after_a_steady_life() -> None:
    restarts = Restarts()
    waits = [restarts.pause_after(0.1) for _ in range(8)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert restarts.pause_after(60.0) == 0.1
    assert restarts.pause_after(0.1) == 0.2


def test_every_writer_and_compactor_knows_every_coordinator() -> None:
    options = {"coordinator": ["--x"]}
    cluster = Cluster("file:///lake", 7070, 2, 2, 1, REDIS, CREDENTIALS, [8001, 8002], options)
    parts = service_processes(cluster)
    assert [part.name for part in parts] == ["coordinator-1", "coordinator-2", "writer-1", "writer-2", "compactor-1"]
    assert all("127.0.0.1:8001,127.0.0.1:8002" in part.argv for part in parts[2:])
    assert ["--x" in part.argv for part in parts] == [True, True, False, False, False]
    assert max(part.stage for part in parts) < redis_process(REDIS).stage
    assert [part.environment.get("HEADGATE_REDIS") for part in parts] == [REDIS.url, REDIS.url, None, None, None]
    assert [part.environment.get("HEADGATE_REDIS_PASSWORD") for part in parts] == ["", "", None, None, None]
    assert not [word for part in parts for word in part.argv[1:] if "secret" in word], "behind the path of this Python"


def test_ready_lines_are_told_from_other_output() -> None:
    cluster = Cluster("file:///lake", 7070, 1, 1, 1, REDIS, CREDENTIALS, [8001], {})
    ready = service_processes(cluster)[0].served_address
    assert ready('{"ready": "127.0.0.1:7070"}\n') == "127.0.0.1:7070"
    assert [ready(line) for line in ("listening\n", "[]\n", "{\n", '{"other": 1}\n')] == [None] * 4


def test_a_schema_file_is_lines_or_json(tmp_path: Path) -> None:
    path = tmp_path / "schema"
    path.write_text("# orders\nid string\nprice decimal(10,2)\n\ntags string[]\nat timestamp\n")
    wanted = pa.schema(
        [
            ("id", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("tags", pa.list_(pa.string())),
            ("at", pa.timestamp("us", tz="UTC")),
        ]
    )
    assert schema_of_file(path) == wanted
    path.write_text('{"id": "string", "price": "decimal(10, 2)", "tags": "string[]", "at": "timestamp"}')
    assert schema_of_file(path) == wanted


@pytest.mark.parametrize("text", ["id", "id varchar", '{"id": "varchar"}', '{"id"', "price decimal(x)"])
def test_a_schema_file_that_makes_no_sense_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "schema"
    path.write_text(text)
    with pytest.raises(CommandError) as refused:
        schema_of_file(path)
    assert refused.value.code is ExitCode.FIX_CALL


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (["bulk-load", "rows.parquet", "--table", "./t"], "headgate load"),
        (["bootstrap", "old", "--table", "./t", "--key", "k"], "adopt"),
    ],
)
def test_without_spark_a_command_says_how_to_get_it_and_what_does_without(
    command: list[str], instead: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert run([*command, "--json"]) == ExitCode.OPERATOR
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["kind"] == "SparkMissing"
    assert "pip install 'headgate-cli[spark]'" in error["fix"]
    assert instead in error["fix"]
