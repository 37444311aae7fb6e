"""Loads of what people have, through a cluster of real processes: hudi-rs reads the rows back, and DuckDB reads the same file."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.dev_cluster import DevCluster
from headgate_cli.exits import ExitCode
from support.readers import read_by_hudi_rs, without_meta

pytestmark = pytest.mark.usefixtures("connected")

ROWS = 300_000


def rows_by_hudi_rs(headgate: Any, table: str) -> list[dict[str, Any]]:
    [described] = headgate("table", "describe", table)[1]
    return without_meta(read_by_hudi_rs(Path(described["url"].removeprefix("file://")))).sort_by("id").to_pylist()


def by_duckdb(sql: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        return connection.sql(sql).to_arrow_table().to_pylist()


@pytest.mark.slow
def test_sql_and_selected_columns_become_the_rows_that_duckdb_makes_of_the_file(headgate: Any, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("id,name,net,day\n" + "".join(f"{n},n{n % 7},{n / 4},2026-01-0{n % 9 + 1}\n" for n in range(1, 2000)))
    sql = "select name as id, sum(net)::decimal(12,2) as total, max(day) as last from {} where id % 2 = 0 group by name"
    load = ("load", str(path), "--table", "totals", "--create", "--key", "id", "--sql", sql.format("input"))
    code, said, error = headgate(*load)
    assert (code, error) == (ExitCode.OK, {})
    assert said[-1]["rows"] == 7
    assert rows_by_hudi_rs(headgate, "totals") == by_duckdb(f"{sql.format(repr(str(path)))} order by 1")
    assert headgate(*load)[1][-1]["rows"] == 0, "the same text over the same file is done"
    assert headgate(*load[:-1], load[-1] + " having sum(net) > 0")[1][-1]["rows"] == 7
    code, _, error = headgate(*load[:-1], "select random() as id from input")
    assert (code, "random()" in error["message"]) == (ExitCode.FIX_CALL, True)
    assert headgate(*load, "--select", "id")[0] == ExitCode.USAGE
    selected = ("load", str(path), "--table", "selected", "--create", "--key", "id", "--select", "day, id")
    assert headgate(*selected)[1][-1]["rows"] == 1999
    assert rows_by_hudi_rs(headgate, "selected") == by_duckdb(f"select day, id from '{path}' order by id")


@pytest.mark.slow
def test_a_file_brings_its_new_columns_only_into_a_table_that_evolves(headgate: Any, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.csv", "b.csv", "c.parquet"))
    first.write_text("id,n\na,1\n")
    second.write_text("id,gate,n\nb,A1,2\n")
    pq.write_table(pa.table({"id": ["c"], "seats": pa.array([4], pa.int64()), "gate": ["A2"]}), third)
    assert headgate("load", str(first), "--table", "evolving", "--create", "--key", "id")[0] == ExitCode.OK
    code, _, error = headgate("load", str(second), "--table", "evolving")
    assert (code, "headgate configure evolving headgate.evolve=add" in error["fix"]) == (ExitCode.FIX_CALL, True)
    headgate("configure", "evolving", "headgate.evolve=add")
    for path, added in ((second, ["gate: string"]), (third, ["seats: int64"]), (first, None)):
        code, said, _ = headgate("load", str(path), "--table", "evolving", "--again")
        told = [event["added"] for event in said if event["event"] == "evolved"]
        assert (code, told, said[-1]["rows"]) == (ExitCode.OK, [added] if added else [], 1)
    rows = rows_by_hudi_rs(headgate, "evolving")
    assert [[row["id"], row["n"], row["gate"], row["seats"]] for row in rows] == [
        ["a", 1, None, None],
        ["b", 2, "A1", None],
        ["c", None, "A2", 4],
    ]


@pytest.mark.slow
def test_a_load_of_sql_that_was_killed_goes_on_with_the_rows_that_are_left(
    headgate: Any, cluster: DevCluster, tmp_path: Path
) -> None:
    path = tmp_path / "big.parquet"
    pq.write_table(pa.table({"n": pa.array(range(ROWS), pa.int64()), "text": ["x" * 40] * ROWS}), path, row_group_size=50_000)
    sql = "select n * 7919 % 300007 as id, n, text from {} order by id desc"
    command = ["load", str(path), "--table", "killed", "--create", "--key", "id", "--buckets", "2", "--sql", sql.format("input")]
    whole = [sys.executable, "-m", "headgate_cli", *command, "--json"]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, env=os.environ | {"HEADGATE_CONNECT": cluster.address}) as first:
        assert first.stdout is not None
        for line in first.stdout:
            if json.loads(line).get("row", 0) >= ROWS // 4:
                first.send_signal(signal.SIGKILL)
                break
    code, said, _ = headgate(*command)
    assert (code, said[-1]["rows"] + said[-1]["skipped"]) == (ExitCode.OK, ROWS)
    assert rows_by_hudi_rs(headgate, "killed") == by_duckdb(f"select * from ({sql.format(repr(str(path)))}) order by id")


@pytest.mark.slow
def test_rejected_rows_of_parquet_and_json_are_loaded_after_mending(headgate: Any, tmp_path: Path) -> None:
    numbers, keys = list(range(1000)), [str(n) for n in range(1000)]
    parquet = tmp_path / "orders.parquet"
    holes: list[str | None] = [None if n in (3, 700) else key for n, key in enumerate(keys)]
    pq.write_table(pa.table({"id": holes, "n": pa.array([2**63 if n == 9 else n for n in numbers], pa.uint64())}), parquet)
    rejected = tmp_path / "rejected.parquet"
    load = ("load", str(parquet), "--table", "mended", "--create", "--key", "id", "--on-error", f"reject:{rejected}")
    code, said, _ = headgate(*load)
    assert (code, said[-1]["rows"], [each["event"] for each in said].count("left_out")) == (ExitCode.OK, 997, 3)
    found = pq.read_table(rejected).to_pylist()
    assert sorted((str(row["id"]), row["n"]) for row in found) == [("9", 2**63), ("None", 3), ("None", 700)]
    mended = [{"id": row["id"] or str(row["n"]), "n": min(row["n"], 9) if row["id"] else row["n"]} for row in found]
    lines = tmp_path / "mended.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in mended) + "no json\n")
    code, said, _ = headgate("load", str(lines), "--table", "mended", "--on-error", "skip", "--max-errors", "1")
    assert (code, said[-1]["rows"]) == (ExitCode.OK, 3)
    assert rows_by_hudi_rs(headgate, "mended") == sorted(
        ({"id": key, "n": n} for n, key in enumerate(keys)), key=lambda row: row["id"]
    )
    code, _, error = headgate(*load[:7], "--again")
    assert (code, error["message"].startswith("orders.parquet: row ")) == (ExitCode.FIX_CALL, True)


@pytest.mark.slow
def test_a_given_channel_is_of_one_file_though_another_claimed_it_before_a_row_was_committed(
    headgate: Any, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("id,n\nx,0\n" + "".join(f"{n},{n}\n" for n in range(1000, 1100)))
    two.write_text("id,n\n" + "".join(f"{n},{n}\n" for n in range(50)))
    headgate("load", str(two), "--table", "owned", "--create", "--key", "id")
    given = ("--table", "owned", "--channel", "mine")
    code, _, error = headgate("load", str(one), *given)
    assert (code, "row 1" in error["message"]) == (ExitCode.FIX_CALL, True), "it has claimed the channel and committed nothing"
    assert headgate("load", str(two), *given)[1][-1]["rows"] == 50
    code, _, error = headgate("load", str(one), *given)
    assert (code, "its first 50 rows would be taken for loaded" in error["message"]) == (ExitCode.FIX_CALL, True)
    assert headgate("load", str(two), *given)[1][-1]["rows"] == 0, "the refused file has taken nothing"


@pytest.mark.slow
def test_a_file_that_grows_for_months_has_two_channels(headgate: Any, tmp_path: Path) -> None:
    path = tmp_path / "grows.csv"
    path.write_text("id,n\n0,0\n")
    for more in range(1, 4):
        given = ("load", str(path), "--table", "grows", "--create", "--key", "id", "--channel", "grows", "--appended")
        code, said, _ = headgate(*given)
        assert (code, said[-1]["rows"]) == (ExitCode.OK, 1)
        with path.open("a") as file:
            file.write(f"{more},{more}\n")
    assert sorted(each["name"] for each in headgate("table", "channels", "grows")[1]) == ["grows", "grows:file"]
    assert headgate(*given[:-1])[0] == ExitCode.FIX_CALL, "the last file is another one than the one before"
    assert headgate(*given[:-2], "grows:file")[0] == ExitCode.USAGE


@pytest.mark.slow
def test_files_of_one_name_are_each_read_once_to_know_them(
    headgate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"in{at}" / "part.csv" for at in range(6)]
    for at, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"id,n\n{at},{at}\n")
    load = ("load", str(tmp_path), "--table", "once", "--create", "--key", "id")
    assert headgate(*load)[0] == ExitCode.OK
    for path in paths:
        path.write_text(path.read_text() + "7,7\n")
    read: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, kind: read.append(file.name) or digest(file, kind))
    code, said, _ = headgate(*load)
    assert (code, [each["event"] for each in said].count("changed")) == (ExitCode.OK, 6)
    assert sorted(read) == sorted(map(str, paths))
