"""Looking into a table by its storage alone: `table timeline|files|scan` and `verify`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_cli.table.storage import Location, scan
from headgate_tables import hudi
from support.counting import counted

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(8, 2)),
        ("ok", pa.bool_()),
    ]
)
ROWS = [
    {
        "id": number,
        "day": f"2026-01-0{number % 3 + 1}",
        "at": datetime(2026, 1, 1, number, tzinfo=UTC),
        "price": f"{number}.50",
        "ok": None,
    }
    for number in range(10)
]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two commits: ten rows, then two of them deleted."""
    url = str(tmp_path / "orders")
    with hudi.create_table(url, SCHEMA, record_key="id", partition_by="day", ordering="at", buckets=2) as made:
        columns = {field.name: pa.array([row[field.name] for row in ROWS]) for field in SCHEMA}
        columns["price"] = columns["price"].cast(SCHEMA.field("price").type)
        rows = pa.table({name: column.cast(SCHEMA.field(name).type) for name, column in columns.items()}, SCHEMA)
        made.upsert(rows)
        made.delete(rows.slice(0, 2))
    return url


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_another_engine_needs_is_a_script_that_runs_as_it_is(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["table", "describe", table, "--for", "spark"]
    assert run([*command, "--json"]) == ExitCode.OK
    [found] = lines(capsys)
    assert run(command) == ExitCode.OK
    script = capsys.readouterr().out
    shown = [line for line in script.splitlines() if not line.startswith("--")]
    assert shown[0] == f"CREATE TABLE IF NOT EXISTS `orders` USING hudi LOCATION 'file://{table}';"
    assert shown[1:] == [f"SET {key}={value};" for key, value in found["settings"].items()]  # type: ignore[attr-defined]
    assert found["settings"]["hoodie.index.type"] == "BUCKET"  # type: ignore[index]
    assert "--   hoodie.datasource.write.precombine.field=at\n" in script


def ids(capsys: pytest.CaptureFixture[str]) -> list[object]:
    return sorted(line["id"] for line in lines(capsys))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("id=5", [5]),
        ("id!=5", [2, 3, 4, 6, 7, 8, 9]),
        ("id>7", [8, 9]),
        ("id>=7", [7, 8, 9]),
        ("id<4", [2, 3]),
        ("id<=4", [2, 3, 4]),
        ("day=2026-01-02", [4, 7]),
        ("price=3.50", [3]),
        ("at>=2026-01-01T08:00:00Z", [8, 9]),
        ("ok=", [2, 3, 4, 5, 6, 7, 8, 9]),
        ("ok!=", []),
    ],
)
def test_a_condition_selects_by_the_type_of_its_column(
    condition: str, wanted: list[int], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "scan", table, "--json", "--columns", "id", "--filter", condition]) == ExitCode.OK
    assert ids(capsys) == wanted


def test_all_conditions_must_hold(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--filter", "id>3", "--filter", "day=2026-01-02"])
    assert ids(capsys) == [4, 7]


def test_partitions_and_limit_bound_a_scan(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--partition", "2026-01-01"])
    assert ids(capsys) == [3, 6, 9]
    run(["table", "scan", table, "--json", "--limit", "4"])
    assert len(ids(capsys)) == 4


def test_count_counts_all_rows_that_match(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--count", "--limit", "1"])
    run(["table", "scan", table, "--json", "--count", "--filter", "id>7"])
    assert lines(capsys) == [{"rows": 8}, {"rows": 2}]


def test_a_scan_with_a_condition_lists_the_timeline_once(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, store = counted(table)
    monkeypatch.setattr(Location, "open", lambda place: reader)
    with store.forgetting():
        found = scan(Location(table), [], ["id=5"], [], 0)
    assert store.listed.count(".hoodie/timeline") == 1
    assert [row["id"] for rows in found.batches for row in rows.to_pylist()] == [5]


@pytest.mark.parametrize(
    ("condition", "code"), [("id", ExitCode.USAGE), ("nope=1", ExitCode.FIX_CALL), ("id=five", ExitCode.FIX_CALL)]
)
def test_a_condition_that_cannot_be_is_refused(
    condition: str, code: ExitCode, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "scan", table, "--json", "--filter", condition]) == code
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["exit_code"] == code
    assert error["fix"]


def test_people_get_columns_and_a_pipe_no_folded_lines(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--filter", "id=5"])
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["id", "day", "at", "price", "ok"]
    assert row.split() == ["5", "2026-01-03", "2026-01-01", "05:00:00+00:00", "5.50", "-"]


def test_digits_of_rows_are_not_grouped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "flights")
    with hudi.create_table(url, pa.schema([("flight", pa.int64())]), record_key="flight", buckets=1) as made:
        made.upsert(pa.table({"flight": [1806]}))
    run(["table", "scan", url])
    assert capsys.readouterr().out.split() == ["flight", "1806"]


def test_the_timeline_says_what_each_commit_wrote(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "timeline", table, "--json"])
    first, second = lines(capsys)
    assert (first["rows"], first["deletes"], first["state"]) == (10, 0, "completed")
    assert second["deletes"] == 2
    run(["table", "timeline", table, "--json", "--limit", "1"])
    assert [line["instant"] for line in lines(capsys)] == [second["instant"]]


def test_files_lists_the_slices_of_every_group(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "files", table, "--json"])
    with hudi.open_table(table) as opened:
        groups = {(group.partition, group.file_id) for group in opened.file_groups()}
    found = lines(capsys)
    assert {(line["partition"], line["file_group"]) for line in found} == groups


def test_verify_says_which_file_has_changed(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", table, "--json"]) == ExitCode.OK
    assert lines(capsys)[0]["ok"] is True
    damaged = next(path for path in Path(table).rglob("*.parquet"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    assert run(["verify", table, "--json"]) == ExitCode.PROBLEMS
    assert damaged.name in json.dumps(lines(capsys)[0]["findings"])


def test_verify_removes_an_archived_instant_that_came_back_when_asked(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    with hudi.open_table(table) as opened:
        opened.configure({"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
        opened.compact()
        first = min(Path(table).glob(".hoodie/timeline/*.deltacommit"))
        content = first.read_bytes()
        row = opened.scan().to_table().slice(0, 1)
        for _ in range(4):
            opened.upsert(row)
        assert first.name[:17] in opened.archive().instants
        opened.win_offsets({})
    first.write_bytes(content)
    assert run(["verify", table, "--json"]) == ExitCode.PROBLEMS
    assert f"{first.name}: archived, but on the timeline again" in " ".join(_problems(capsys))
    assert run(["verify", table, "--repair"]) == ExitCode.OK
    assert f"{first.name}: removed, because it was archived before." in capsys.readouterr().out
    assert not first.exists()
    first.write_bytes(content)
    assert run(["verify", table, "--json", "--repair"]) == ExitCode.OK
    assert lines(capsys)[0]["removed"] == [f".hoodie/timeline/{first.name}"]


def _problems(capsys: pytest.CaptureFixture[str]) -> list[str]:
    findings: Any = lines(capsys)[0]["findings"]
    return [f"{finding['path']}: {finding['problem']}" for finding in findings]


def test_verify_puts_a_deleted_instant_back_when_asked(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    gone = min(Path(table).glob(".hoodie/timeline/*.deltacommit"))
    gone.unlink()
    assert run(["table", "scan", table, "--json"]) == ExitCode.OPERATOR
    assert "headgate verify TABLE --repair" in json.loads(capsys.readouterr().err)["error"]["fix"]
    assert run(["verify", table, "--json"]) == ExitCode.PROBLEMS
    assert gone.name in json.dumps(lines(capsys)[0]["findings"])
    assert run(["verify", table, "--json", "--repair"]) == ExitCode.OK
    assert lines(capsys)[0]["repaired"] == [f".hoodie/timeline/{gone.name}"]
    assert run(["verify", table, "--repair"]) == ExitCode.OK
    assert ": restored" not in capsys.readouterr().out
    assert run(["table", "scan", table, "--json"]) == ExitCode.OK


def test_a_place_without_a_table_is_the_callers_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "timeline", str(tmp_path / "nothing"), "--json"]) == ExitCode.FIX_CALL
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "NotATableError"


def test_a_scan_of_the_past_and_of_what_changed_says_where_to_read_on(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "timeline", table, "--json"])
    first, second = lines(capsys)
    assert run(["table", "scan", table, "--json", "--as-of", str(first["instant"])]) == ExitCode.OK
    assert ids(capsys) == list(range(10))
    with hudi.open_table(table) as opened:
        opened.upsert(opened.scan(filter=pa.compute.field("id") == 5).to_table())
    assert run(["table", "scan", table, "--json", "--since", str(second["completed"])]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == [5]
    newest = json.loads(err)["as_of"]
    assert newest > str(second["completed"])
    assert run(["table", "scan", table, "--since", newest]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == ["no rows", f"Read on with --since {newest}"]


def test_a_read_optimised_scan_reads_base_files_alone(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--read-optimized", "--count"])
    run(["table", "scan", table, "--json", "--count"])
    assert lines(capsys) == [{"rows": 10}, {"rows": 8}]


@pytest.mark.parametrize("wrong", [["--as-of", "yesterday"], ["--read-optimized", "--since", "20261121101500123"]])
def test_a_scan_of_no_point_is_refused(wrong: list[str], table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "scan", table, "--json", *wrong]) == ExitCode.FIX_CALL
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["kind"], bool(error["fix"])) == ("OptionError", True)


@pytest.mark.parametrize(("option", "code"), [("--where", ExitCode.FIX_CALL), ("--columns", ExitCode.USAGE)])
def test_an_option_of_a_scan_that_is_empty_is_not_one_that_was_left_out(
    option: str, code: ExitCode, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["table", "scan", table, option, "", "--json"]) == code
    assert not capsys.readouterr().out


def test_a_setting_that_is_not_there_cannot_be_unset(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["configure", table, "--unset", "hoodie.keep.max.comits", "--json"]) == ExitCode.FIX_CALL
    error = json.loads(capsys.readouterr().err)["error"]
    assert "'hoodie.keep.max.comits' is not a setting of a table" in error["message"]
    assert "Did you mean 'hoodie.keep.max.commits'?" in error["fix"]
    assert run(["configure", table, "--unset", "hoodie.keep.max.commits", "--json"]) == ExitCode.OK


@pytest.mark.parametrize(("condition", "said"), [("id = 5", "1 row\n"), ("id > 5", "4 rows\n"), ("id > 50", "0 rows\n")])
def test_one_is_singular(condition: str, said: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "scan", table, "--where", condition, "--count"]) == ExitCode.OK
    assert capsys.readouterr().out == said
