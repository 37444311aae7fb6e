"""The commands against a cluster that `headgate dev` runs: real processes, one for the whole file."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headgate as headgate_sdk
from demo.dev_cluster import DevCluster
from headgate.profiles import find_profile
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from support.processes import READY_S

ROWS = 400_000


@pytest.fixture
def headgate(connected: None, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --json; returns the exit code and what it said on stdout and stderr."""

    def call(*arguments: str) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
        code = run([*arguments, "--json"])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], [json.loads(e) for e in captured.err.splitlines()]

    return call


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("id,day,price\n" + "".join(f"{number},2026-01-0{number % 3 + 1},{number}.5\n" for number in range(1000)))
    return path


@pytest.mark.slow
def test_a_file_is_loaded_once_however_often_the_command_runs(headgate: Any, orders: Path) -> None:
    command = ("load", str(orders), "--table", "once", "--create", "--key", "id", "--partition-by", "day", "--buckets", "2")
    code, said, _ = headgate(*command)
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 1000, 0)
    code, said, _ = headgate(*command)
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 0, 1000)
    assert headgate("table", "scan", "once", "--count")[1] == [{"rows": 1000}]
    assert headgate("verify", "once")[1][0]["ok"] is True


@pytest.mark.slow
def test_deletes_and_mixed_operations_come_from_files_too(headgate: Any, orders: Path, tmp_path: Path) -> None:
    headgate("load", str(orders), "--table", "mixed", "--create", "--key", "id", "--partition-by", "day")
    gone = tmp_path / "gone.csv"
    gone.write_text("id,day\n0,2026-01-01\n1,2026-01-02\n")
    assert headgate("load", str(gone), "--table", "mixed", "--delete")[0] == ExitCode.OK
    changes = tmp_path / "changes.jsonl"
    changes.write_text(
        '{"op": 1, "id": 2, "day": "2026-01-03", "price": 9.5}\n{"op": 2, "id": 3, "day": "2026-01-01", "price": null}\n'
    )
    code, _, errors = headgate("load", str(changes), "--table", "mixed", "--operation-column", "op")
    assert code == ExitCode.OK, errors
    _, rows, _ = headgate("table", "scan", "mixed", "--filter", "id<5")
    assert sorted((row["id"], row["price"]) for row in rows) == [(2, 9.5), (4, 4.5)]


@pytest.mark.slow
def test_a_load_that_was_killed_goes_on_where_it_was(headgate: Any, cluster: DevCluster, tmp_path: Path) -> None:
    path = tmp_path / "big.parquet"
    pq.write_table(pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": ["x" * 40] * ROWS}), path, row_group_size=50_000)
    command = ["load", str(path), "--table", "resumed", "--create", "--key", "id", "--buckets", "2"]
    whole = [sys.executable, "-m", "headgate_cli", *command, "--json"]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, env=os.environ | {"HEADGATE_CONNECT": cluster.address}) as first:
        assert first.stdout is not None
        for line in first.stdout:
            if json.loads(line).get("row", 0) >= ROWS // 4:
                first.send_signal(signal.SIGKILL)
                break
    code, said, _ = headgate(*command)
    assert code == ExitCode.OK
    assert said[-1]["rows"] + said[-1]["skipped"] == ROWS
    assert headgate("table", "scan", "resumed", "--count")[1] == [{"rows": ROWS}]


@pytest.mark.slow
def test_a_dry_run_shows_columns_and_rows_and_makes_nothing(headgate: Any, orders: Path) -> None:
    command = ("load", str(orders), "--table", "planned", "--create", "--key", "id")
    code, said, _ = headgate(*command, "--dry-run")
    columns = {each["name"]: each["type"] for each in said if each.get("event") == "column"}
    assert (code, columns) == (ExitCode.OK, {"id": "int64", "day": "date32[day]", "price": "double"})
    assert [len(each["rows"]) for each in said if each.get("event") == "rows"] == [10]
    planned = {"event": "plan", "table": "planned", "exists": False, "operation": "upsert", "files": [str(orders)]}
    assert said[-1] == planned
    assert headgate("table", "describe", "planned")[0] == ExitCode.FIX_CALL
    assert headgate(*command)[0] == ExitCode.OK
    assert headgate(*command, "--dry-run")[1][-1]["exists"] is True


@pytest.mark.slow
def test_a_file_that_was_edited_is_loaded_again_and_one_that_is_the_same_is_not(headgate: Any, orders: Path) -> None:
    command = ("load", str(orders), "--table", "edited", "--create", "--key", "id")
    headgate(*command)
    text = orders.read_text()
    orders.write_text(text.replace("999.5", "111.5"))  # as many bytes
    code, said, _ = headgate(*command)
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 1000, 0)
    assert [row["price"] for row in headgate("table", "scan", "edited", "--filter", "id=999")[1]] == [111.5]
    code, said, _ = headgate(*command)
    assert said[-1]["rows"] == 0
    assert not changes_in(said), "it is as it was loaded"


def changes_in(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in said if each["event"] == "changed"]


@pytest.mark.slow
def test_a_file_that_has_changed_since_its_load_is_never_loaded_without_a_word(
    headgate: Any, orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("load", str(orders), "--table", "told", "--create", "--key", "id")
    assert changes_in(headgate(*command)[1]) == []
    [channel] = [each["name"] for each in headgate("table", "channels", "told")[1]]
    assert changes_in(headgate(*command, "--again")[1]) == [], "that it is loaded once more is known"
    orders.write_text(orders.read_text().replace("999.5", "111.5"))
    [changed] = changes_in(headgate(*command)[1])
    assert (changed["file"], changed["rows"], changed["why"]) == ("orders.csv", 1000, "content")
    assert changed["channel"].startswith(channel)
    [changed] = changes_in(headgate(*command, "--null", "x")[1])
    assert (changed["rows"], changed["why"]) == (1000, "options")
    orders.write_text("id,day,price\n1,2026-01-02,1.0\n")
    assert run(list(command)) == ExitCode.OK
    said = capsys.readouterr().out
    assert "orders.csv has changed, or is not the file of this name that was loaded as channel load:upsert:orders.csv:" in said
    assert "it is loaded whole, as upserts; rows of the other load that it does not have stay." in said


@pytest.mark.slow
def test_files_of_one_name_in_several_folders_are_no_changes_of_each_other(headgate: Any, tmp_path: Path) -> None:
    for at in (1, 2, 3):
        (tmp_path / f"in{at}").mkdir()
        (tmp_path / f"in{at}" / "part.csv").write_text(f"id,n\n{at},{at}\n")
    command = ("load", str(tmp_path), "--table", "parts", "--create", "--key", "id")
    (tmp_path / "in3" / "part.csv").rename(tmp_path / "later")
    assert changes_in(headgate(*command)[1]) == []
    (tmp_path / "later").rename(tmp_path / "in3" / "part.csv")
    assert changes_in(headgate(*command)[1]) == []
    assert headgate("table", "scan", "parts", "--count")[1] == [{"rows": 3}]


@pytest.mark.slow
def test_a_channel_that_is_given_belongs_to_one_file_until_more_is_appended(headgate: Any, orders: Path) -> None:
    command = ("load", str(orders), "--table", "given", "--create", "--key", "id", "--channel", "mine")
    assert headgate(*command)[1][-1]["rows"] == 1000
    assert headgate(*command)[1][-1]["rows"] == 0
    with orders.open("a") as file:
        file.write("5000,2026-01-01,1.5\n")
    code, _, [error] = headgate(*command)
    assert (code, "its first 1,000 rows would be taken for loaded" in error["error"]["message"]) == (ExitCode.FIX_CALL, True)
    assert "--appended loads what is behind row 1,000" in error["error"]["fix"]
    code, said, _ = headgate(*command, "--appended")
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 1, 1000)
    assert headgate(*command)[1][-1]["rows"] == 0
    assert headgate("table", "scan", "given", "--count")[1] == [{"rows": 1001}]
    assert headgate(*command[:-2], "--appended")[0] == ExitCode.USAGE


@pytest.mark.slow
def test_a_file_that_was_loaded_is_loaded_once_more_when_asked(headgate: Any, orders: Path) -> None:
    """In between, another file changes a row of it; the load brings it back."""
    command = ("load", str(orders), "--table", "again", "--create", "--key", "id")
    headgate(*command)
    fix = orders.with_name("fix.csv")
    fix.write_text("id,day,price\n7,2026-01-02,99.0\n")
    headgate("load", str(fix), "--table", "again")
    assert [row["price"] for row in headgate("table", "scan", "again", "--filter", "id=7")[1]] == [99.0]
    code, said, _ = headgate(*command, "--again")
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 1000, 0)
    assert [row["price"] for row in headgate("table", "scan", "again", "--filter", "id=7")[1]] == [7.5]
    assert headgate(*command, "--again", "--channel", "x")[0] == ExitCode.USAGE


def test_nothing_to_load_is_no_success_in_green(headgate: Any, orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["load", str(orders), "--table", "quiet", "--create", "--key", "id"]
    headgate(*command)
    assert run(command) == ExitCode.OK
    assert "nothing to load: its 1,000 rows were loaded before. To load it once more: --again" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_changes_while_it_is_loaded_is_an_error(headgate: Any, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = headgate_sdk.Channel.flush

    def append_and_flush(channel: headgate_sdk.Channel, *arguments: Any) -> None:
        with orders.open("a") as file:
            file.write("1000,2026-01-01,1.5\n")
        flush(channel, *arguments)

    command = ("load", str(orders), "--table", "moving", "--create", "--key", "id")
    with monkeypatch.context() as patched:
        patched.setattr(headgate_sdk.Channel, "flush", append_and_flush)
        code, _, errors = headgate(*command)
    assert (code, "was changed while it was loaded" in errors[0]["error"]["message"]) == (ExitCode.FIX_CALL, True)
    assert headgate(*command)[1][-1]["rows"] == 1001


def test_a_load_that_fails_before_its_first_row_leaves_no_table(headgate: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes("id,name\n1,K\xf6ln\n".encode("latin-1"))
    numbers = tmp_path / "numbers.json"
    numbers.write_text('{"id": 1, "x": 1.5}\n{"id": 2, "x": 9007199254740993}\n')
    for each, option in ((path, "--encoding"), (numbers, "--cast")):
        code, _, errors = headgate("load", str(each), "--table", "never", "--create", "--key", "id")
        assert (code, option in errors[0]["error"]["fix"]) == (ExitCode.FIX_CALL, True)
        assert headgate("table", "describe", "never")[0] == ExitCode.FIX_CALL


def test_columns_whose_names_no_table_has_are_loaded_under_others(headgate: Any, tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("Order ID,Change\n1,upsert\n2,upsert\n")
    command = ("load", str(path), "--table", "named", "--create", "--key", "order_id", "--operation-column", "op")
    code, _, errors = headgate(*command)
    assert (code, "--rename 'Order ID=order_id'" in errors[0]["error"]["fix"]) == (ExitCode.FIX_CALL, True)
    code, said, errors = headgate(*command, "--rename", "Order ID=order_id", "--rename", "Change=op")
    assert (code, errors, said[-1]["rows"]) == (ExitCode.OK, [], 2)
    rows = headgate("table", "scan", "named")[1]
    assert sorted(row["order_id"] for row in rows) == [1, 2]
    assert headgate(*command, "--rename", "x")[0] == ExitCode.USAGE


@pytest.mark.slow
def test_rows_that_were_rejected_are_loaded_after_mending(headgate: Any, orders: Path) -> None:
    lines = orders.read_text().splitlines(keepends=True)
    lines[3], lines[500] = "2,2026-01-03,much\n", "499,2026-01-02\n"
    types = ("--cast", "price=double")
    orders.write_text("".join(lines))
    rejected = orders.with_name("rejected.csv")
    command = ("load", str(orders), "--table", "mended", "--create", "--key", "id", *types, "--on-error", f"reject:{rejected}")
    code, _, errors = headgate(*command, "--max-errors", "1")
    assert (code, "--max-errors" in errors[0]["error"]["fix"]) == (ExitCode.FIX_CALL, True)
    assert headgate("table", "describe", "mended")[0] == ExitCode.FIX_CALL
    code, said, _ = headgate(*command)
    assert (code, said[-1]["rows"]) == (ExitCode.OK, 998)
    assert [each["event"] for each in said].count("left_out") == 2
    assert headgate(*command, "--again")[0] == ExitCode.USAGE, "the file of rejected rows may be half mended"
    rejected.write_text(rejected.read_text().replace("much", "2.5").replace("499,2026-01-02", "499,2026-01-02,499.5"))
    assert headgate("load", str(rejected), "--table", "mended", *types)[1][-1]["rows"] == 2
    assert headgate("table", "scan", "mended", "--count")[1] == [{"rows": 1000}]
    parquet = orders.with_name("rows.parquet")
    pq.write_table(pa.table({"id": [1]}), parquet)
    code, _, errors = headgate("load", str(parquet), "--table", "mended", "--on-error", f"reject:{orders}.csv")
    assert (code, ".parquet" in errors[0]["error"]["message"]) == (ExitCode.USAGE, True)


def test_status_knows_everybody_and_what_a_checkpoint_costs(headgate: Any, orders: Path) -> None:
    headgate("load", str(orders), "--table", "priced", "--create", "--key", "id")
    code, (found,), _ = headgate("status")
    assert code == ExitCode.OK
    assert found["redis_reachable"] is True
    assert [coordinator["name"] for coordinator in found["coordinators"]] == ["coordinator-1"]
    assert len(found["writers"]) == 2
    assert [compactor["leaving"] for compactor in found["compactors"]] == [False]
    table = next(table for table in found["tables"] if table["name"] == "priced")
    assert (table["state"], table["owner"]) == ("owned", "coordinator-1")
    assert table["checkpoint_files"] > 0
    assert table["checkpoint_bytes"] > 0
    assert (table["operations"], table["operations_queued"]) == ([], 0)


def test_tables_are_listed_and_described_as_they_were_made(headgate: Any, tmp_path: Path) -> None:
    schema = tmp_path / "schema.txt"
    schema.write_text("id string\nday string\nat timestamp\nprice decimal(10,2)\n")
    wanted = ("--key", "id", "--partition-by", "day", "--ordering", "at", "--buckets", "3", "--table-version", "9")
    code, (made,), _ = headgate("table", "create", "described", "--schema", str(schema), *wanted)
    assert code == ExitCode.OK
    assert headgate("table", "describe", "described")[1] == [made]
    assert made in headgate("table", "list")[1]
    code, _, (error,) = headgate("table", "describe", "describe")
    assert code == ExitCode.FIX_CALL
    assert str(error).count("Did you mean 'described'?") == 1, "the SDK and the command each look for it"
    assert (made["key"], made["partition_by"], made["ordering"], made["buckets"]) == (["id"], ["day"], "at", 3)
    assert made["table_version"] == 9
    assert [column["type"] for column in made["columns"]] == ["string", "string", "timestamp[us, tz=UTC]", "decimal128(10, 2)"]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["table", "describe", "nowhere"], "TableNotFoundError"),
        (["table", "scan", "nowhere"], "TableNotFoundError"),
        (["compact", "nowhere"], "TableNotFoundError"),
        (["restore", "nowhere", "1", "--yes"], "TableNotFoundError"),
        (["table", "adopt", "nowhere"], "TableNotFoundError"),
        (["table", "create", "../up", "--schema", "SCHEMA", "--key", "id"], "InvalidArgumentError"),
        (["table", "create", "t", "--schema", "SCHEMA", "--key", "nope"], "SchemaError"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else value,
)
def test_what_the_cluster_refuses_is_the_callers_to_fix(arguments: list[str], kind: str, headgate: Any, tmp_path: Path) -> None:
    schema = tmp_path / "schema.txt"
    schema.write_text("id string\n")
    code, _, errors = headgate(*(str(schema) if word == "SCHEMA" else word for word in arguments))
    assert (code, errors[0]["error"]["kind"]) == (ExitCode.FIX_CALL, kind)


@pytest.mark.slow
def test_a_file_that_does_not_fit_the_table_is_refused_with_the_column(headgate: Any, orders: Path, tmp_path: Path) -> None:
    headgate("load", str(orders), "--table", "strict", "--create", "--key", "id")
    other = tmp_path / "other.csv"
    for text, column in (("day,price\n2026-01-01,2.5\n", "missing: id"), ("id,prise\n1,2.5\n", "unknown: prise")):
        other.write_text(text)
        code, _, errors = headgate("load", str(other), "--table", "strict")
        assert (code, column in errors[0]["error"]["message"]) == (ExitCode.FIX_CALL, True)
    assert "Did you mean 'price'?" in errors[0]["error"]["fix"]


@pytest.mark.slow
def test_columns_that_a_file_lacks_are_named_and_null(headgate: Any, orders: Path, tmp_path: Path) -> None:
    headgate("load", str(orders), "--table", "lacking", "--create", "--key", "id")
    short = tmp_path / "short.csv"
    short.write_text("price,id\n2.5,7\n")
    said = {"event": "lacking", "file": str(short), "columns": ["day"]}
    for options in (["--dry-run"], []):
        code, lines, _ = headgate("load", str(short), "--table", "lacking", *options)
        assert (code, said in lines) == (ExitCode.OK, True)
    _, rows, _ = headgate("table", "scan", "lacking", "--filter", "id = 7")
    assert [(row["id"], row["day"], row["price"]) for row in rows if "id" in row] == [(7, None, 2.5)]
    _, lines, _ = headgate("load", str(orders), "--table", "lacking", "--again")
    assert not [line for line in lines if line["event"] == "lacking"]


@pytest.mark.slow
def test_compactors_do_what_an_operator_asks_the_owner_for(headgate: Any, orders: Path) -> None:
    headgate("load", str(orders), "--table", "compacted", "--create", "--key", "id", "--buckets", "2")
    code, (planned,), _ = headgate("compact", "compacted", "--plan-only")
    assert code == ExitCode.OK
    assert sum(each["log_files"] for plan in planned["plans"] for each in plan["operations"]) == 2
    code, said, _ = headgate("compact", "compacted")
    (plan,) = said[0]["plans"]
    assert (code, said[0]["event"], said[-1]["event"], plan["instant"] != "") == (ExitCode.OK, "planned", "compacted", True)
    assert [line["operations"] for line in said[1:-1]] == [2] * len(said[1:-1])
    assert said[-2]["bytes_done"] == said[-2]["bytes"] > 0
    assert said[-1]["plans"] == [{"instant": plan["instant"], "finished": 2, "dropped": [], "cancelled": False}]
    slices = headgate("table", "files", "compacted")[1]
    assert {(each["base_instant"], each["logs"]) for each in slices} >= {(plan["instant"], 0)}
    assert headgate("compact", "compacted")[1] == [{"event": "planned", "plans": [], "compactors": 1}]
    headgate("configure", "compacted", "hoodie.clustering.plan.strategy.sort.columns=id")
    assert len(headgate("compact", "compacted", "--sort", "--plan-only")[1][0]["plans"][0]["operations"]) == 2
    assert headgate("compact", "compacted", "--sort")[1][-1]["plans"][0]["finished"] == 2
    assert headgate("compact", "compacted", "--sort")[1] == [{"event": "planned", "plans": [], "compactors": 1}]
    assert headgate("table", "scan", "compacted", "--count")[1] == [{"rows": 1000}]


@pytest.mark.slow
def test_a_table_of_the_cluster_goes_back_to_a_savepoint(headgate: Any, orders: Path, tmp_path: Path) -> None:
    headgate("load", str(orders), "--table", "back", "--create", "--key", "id", "--partition-by", "day")
    code, (saved,), _ = headgate("savepoint", "back", "--comment", "loaded")
    assert (code, saved["savepoints"]) == (ExitCode.OK, [saved["instant"]])
    gone = tmp_path / "gone.csv"
    gone.write_text("id,day\n0,2026-01-01\n1,2026-01-02\n")
    headgate("load", str(gone), "--table", "back", "--delete")
    assert headgate("table", "scan", "back", "--count")[1] == [{"rows": 998}]
    code, (done,), _ = headgate("restore", "back", saved["instant"], "--yes")
    assert (code, len(done["undone"]), done["instant"] != "") == (ExitCode.OK, 1, True)
    assert headgate("table", "scan", "back", "--count")[1] == [{"rows": 1000}]
    code, said, _ = headgate("load", str(gone), "--table", "back", "--delete")
    assert (code, said[-1]["rows"], said[-1]["skipped"]) == (ExitCode.OK, 2, 0), "the restore took the offset back"
    assert headgate("table", "scan", "back", "--count")[1] == [{"rows": 998}]
    assert headgate("savepoint", "back", "--remove", saved["instant"])[1][0]["savepoints"] == []


@pytest.mark.slow
def test_the_services_of_a_table_of_the_cluster_are_set_and_run_by_name(headgate: Any, orders: Path) -> None:
    headgate("load", str(orders), "--table", "served", "--create", "--key", "id")
    code, (setting,), _ = headgate("configure", "served", "hoodie.clean.commits.retained=7")
    assert (code, setting["value"], setting["default"] != "7") == (ExitCode.OK, "7", True)
    assert "hoodie.clean.commits.retained" in [each["key"] for each in headgate("configure", "served")[1]]
    for command in ("clean", "archive"):
        for plan_only in ([], ["--plan-only"]):
            code, (done,), _ = headgate(command, "served", *plan_only)
            assert (code, done.get("files", 0), done.get("instants", [])) == (ExitCode.OK, 0, [])
    for command, before, version in (("upgrade", 8, 9), ("upgrade", 9, 9), ("downgrade", 9, 8)):
        code, (changed,), _ = headgate("table", command, "served")
        assert (code, changed) == (ExitCode.OK, {"table": "served", "before": before, "table_version": version})
        assert headgate("table", "describe", "served")[1][0]["table_version"] == version
    for added in (["gate: string"], []):
        code, (changed,), _ = headgate("table", "alter", "served", "--add", "gate=string")
        assert (code, changed["added"]) == (ExitCode.OK, added)
        assert headgate("table", "describe", "served")[1][0]["columns"][-1]["name"] == "gate"
    code, (adopted,), _ = headgate("table", "adopt", "served")
    assert (code, adopted["completed"]) == (ExitCode.OK, [])


def test_no_secret_is_in_a_list_of_processes_a_log_or_an_answer(headgate: Any, cluster: DevCluster) -> None:
    parts = [psutil.Process(fields["pid"]) for _, fields in cluster.events if fields["event"] == "serving"]
    parts = [part for part in parts if part.is_running()]
    (redis,) = Path(os.environ["XDG_STATE_HOME"]).rglob(f"{cluster.port}/redis.conf")
    digests = re.findall(r" on #(\w{64}) ", redis.read_text())
    profile = find_profile([cluster.address], os.environ)
    assert profile is not None
    assert profile.token
    assert len(digests) == 1, "of Redis's password, which is written nowhere"
    said = [json.dumps(headgate("status")), json.dumps(cluster.events)]
    parents = [psutil.Process(number) for number in {part.ppid() for part in parts}]
    said += [word for part in (*parts, *parents) for word in part.cmdline()]
    said += [path.read_text() for path in cluster.logs.iterdir()]
    assert not [text for text in said if profile.token in text]
    like_passwords = [run for text in said for run in re.findall(r"[0-9a-f]{32,}", text)]
    assert not [
        run
        for run in like_passwords
        for at in range(len(run) - 31)
        if hashlib.sha256(run[at : at + 32].encode()).hexdigest() == digests[0]
    ]


@pytest.mark.slow
def test_nobody_gets_in_without_the_profile(headgate: Any, cluster: DevCluster, tmp_path: Path, monkeypatch: Any) -> None:
    """As another user, who knows the address alone; with the files that the profile stands for it works."""
    state = Path(os.environ["XDG_STATE_HOME"]) / "headgate/dev" / str(cluster.port)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert headgate("table", "list", "--timeout", "1")[0] == ExitCode.RETRY_LATER, "plaintext"
    authority = ("--tls-ca", str(state / "ca.pem"))
    assert headgate("table", "list", *authority)[0] == ExitCode.OPERATOR, "no token"
    assert headgate("table", "list", *authority, "--token-file", str(state / "token"))[0] == ExitCode.OK


@pytest.mark.slow
def test_a_killed_writer_comes_back_and_a_load_goes_through(headgate: Any, cluster: DevCluster, orders: Path) -> None:
    seen = len(cluster.events)
    cluster.kill("writer-2")
    code, said, _ = headgate("load", str(orders), "--table", "survives", "--create", "--key", "id")
    assert (code, said[-1]["rows"]) == (ExitCode.OK, 1000)
    cluster.wait_for("serving", "writer-2", after=seen, seconds=READY_S)
    died = cluster.wait_for("died", "writer-2", after=seen, seconds=1)[1]
    assert died["exit"] == -signal.SIGKILL
