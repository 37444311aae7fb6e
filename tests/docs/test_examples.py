"""The programs of examples/ do what they say, also when they are killed and started again."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headgate
from demo.flights import unpack_csv
from demo.ports import free_port
from support.cluster import Cluster
from support.pages import ROOT, cells_of, text_of

EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.*") if path.suffix in (".py", ".ipynb"))
WAIT_S = 60


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = {"coordinator": ["--checkpoint-interval", "500ms"]}
    with Cluster(tmp_path_factory.mktemp("examples") / "cluster", options=options) as cluster:
        yield cluster.address


@pytest.fixture
def hg(address: str) -> Iterator[headgate.Headgate]:
    with headgate.connect(address, wait=WAIT_S) as connection:
        yield connection


@contextmanager
def running(address: str, *command: str, stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """A program of examples/, killed in the end if it is still there."""
    env = {**os.environ, "HEADGATE_CONNECT": address}
    arguments = [sys.executable, *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, env=env, cwd=EXAMPLES, stdin=stdin, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def run(address: str, *command: str, given: str | None = None) -> str:
    """What a program prints that ends well."""
    with running(address, *command, stdin=subprocess.DEVNULL if given is None else subprocess.PIPE) as program:
        said, _ = program.communicate(given, timeout=WAIT_S)
    assert program.returncode == 0, said
    return said


def until(holds: Callable[[], bool], program: subprocess.Popen[str]) -> None:
    """Waits for it, as long as the program runs."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert program.poll() is None, f"it ended: {program.stdout.read() if program.stdout else ''}"
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.1)


def committed(hg: headgate.Headgate, table: str) -> Mapping[str, int]:
    """Channels and their committed offsets; none while there is no such table."""
    if table not in {info.name for info in hg.tables()}:
        return {}
    return {channel.name: channel.committed_offset for channel in hg.table(table).channels()}


@pytest.mark.slow
def test_a_folder_of_csv_files_that_was_broken_off_is_loaded_once(address: str, hg: headgate.Headgate, tmp_path: Path) -> None:
    count = 200_000
    with (tmp_path / "big.csv").open("w") as file:
        file.write("id,day,at,price\n")
        file.writelines(f"{n},2026-01-0{n % 2 + 1},2026-01-01T00:00:00Z,{n / 4}\n" for n in range(count))
    (tmp_path / "small.csv").write_text("id,day,at,price\n-1,2026-01-03,2026-01-01T00:00:00Z,\n")
    with running(address, "csv_folder.py", str(tmp_path)) as program:
        until(lambda: committed(hg, "orders").get("csv/big.csv", 0) > 0, program)
    run(address, "csv_folder.py", str(tmp_path))
    assert committed(hg, "orders") == {"csv/big.csv": count, "csv/small.csv": 1}
    rows = hg.table("orders").scan().to_arrow()
    assert rows.num_rows == count + 1
    assert rows["price"].null_count == 1
    assert run(address, "csv_folder.py", str(tmp_path)).splitlines() == ["big.csv: 0 rows", "small.csv: 0 rows"]


@pytest.mark.slow
def test_a_csv_file_with_a_wrong_value_ends_with_its_text(address: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("id,day,at,price\n1,2026-01-01,2026-01-01T00:00:00Z,cheap\n")
    with running(address, "csv_folder.py", str(tmp_path)) as program:
        said, _ = program.communicate(timeout=WAIT_S)
    assert program.returncode == 1
    assert "cheap" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_frame_is_written_corrected_and_compared(address: str, hg: headgate.Headgate) -> None:
    for _ in range(2):  # it may be run again
        said = run(address, "pandas_frames.py")
        assert re.search(r"^JFK-01 .* 39\.2 +4\.0$", said, re.MULTILINE)
        assert re.search(r"^JFK-02 .* 3\.7 +3\.7$", said, re.MULTILINE)
    assert hg.table("weather").scan(where="celsius > 30").to_arrow().num_rows == 0


def post(url: str, body: Mapping[str, object]) -> int:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def answers(url: str) -> bool:
    try:
        return post(url, {}) == 422
    except OSError:
        return False


@pytest.mark.slow
def test_the_service_answers_when_a_request_is_in_the_table(address: str, hg: headgate.Headgate) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/events"
    events = [{"id": f"event-{number}", "kind": "order", "amount": number / 2} for number in range(30)]
    with running(address, "-m", "uvicorn", "fastapi_service:app", "--port", str(port)) as program:
        until(lambda: answers(url), program)
        with ThreadPoolExecutor(10) as callers:
            assert set(callers.map(lambda event: post(url, event), events)) == {201}
        program.kill()  # what was answered is there, whatever becomes of the service
    assert amounts(hg) == {event["id"]: event["amount"] for event in events}
    with running(address, "-m", "uvicorn", "fastapi_service:app", "--port", str(port)) as program:
        until(lambda: answers(url), program)
        assert post(url, {"id": "", "kind": "order", "amount": 1}) == 422
        program.terminate()
        program.wait(WAIT_S)


def amounts(hg: headgate.Headgate) -> dict[object, object]:
    rows = hg.table("events").scan(["id", "amount"]).to_arrow().to_pylist()
    return {row["id"]: row["amount"] for row in rows}


@pytest.mark.slow
def test_a_producer_that_was_killed_goes_on_in_the_middle_of_its_file(
    address: str, hg: headgate.Headgate, tmp_path: Path
) -> None:
    file = tmp_path / "app.log"
    lines = [
        json.dumps({"id": f"{n}", "at": "2026-01-01T00:00:00+00:00", "level": "INFO", "text": "é" * (n % 7)})
        for n in range(2_500)
    ]
    with file.open("a", encoding="utf-8") as log:
        log.writelines(f"{line}\n" for line in lines[:1_500])
        log.write(lines[1_500][:10])  # is being written
        log.flush()
        whole = log.tell() - 10
        with running(address, "asyncio_producer.py", str(file)) as program:
            until(lambda: committed(hg, "logs").get("follow/app.log") == whole, program)
        log.write(lines[1_500][10:] + "\n")
        log.writelines(f"{line}\n" for line in lines[1_501:])
        log.flush()
        before = hg.table("logs").scan().as_of
        with running(address, "asyncio_producer.py", str(file)) as program:
            until(lambda: committed(hg, "logs").get("follow/app.log") == file.stat().st_size, program)
    scan = hg.table("logs").scan(since=before)
    assert {row["id"] for row in scan.to_arrow().to_pylist()} == {f"{n}" for n in range(1_500, 2_500)}, "others came again"
    assert hg.table("logs").scan().to_arrow().num_rows == len(lines)


def change(lsn: int, op: str, before: object, after: object) -> str:
    return json.dumps({"payload": {"op": op, "before": before, "after": after, "source": {"lsn": lsn}}}) + "\n"


def shop(first: int, last: int) -> Iterator[str]:
    """Changes of a shop: two orders inserted at once, one updated, the other deleted, and the message behind a delete."""
    for lsn in range(first * 100, last * 100, 100):
        kept, gone = ({"id": lsn + n, "customer": "ann", "total": 1.0} for n in (1, 2))
        yield change(lsn, "c", None, kept)
        yield change(lsn, "c", None, gone)
        yield change(lsn + 10, "u", None, {**kept, "total": 2.0})
        yield change(lsn + 20, "d", {**gone, "customer": None, "total": None}, None)
        yield "null\n"


@pytest.mark.slow
def test_a_change_feed_that_comes_again_after_a_kill_changes_nothing_twice(address: str, hg: headgate.Headgate) -> None:
    with running(address, "change_feed.py", stdin=subprocess.PIPE) as program:
        assert program.stdin
        program.stdin.writelines(shop(1, 50))
        program.stdin.flush()
        until(lambda: committed(hg, "shop_orders").get("shop.public.orders", 0) >= 4_910, program)
    then = hg.table("shop_orders").scan().as_of
    run(address, "change_feed.py", given="".join([*shop(30, 50), *shop(50, 80)]))
    assert committed(hg, "shop_orders") == {"shop.public.orders": 7_920}
    found = hg.table("shop_orders").scan().to_arrow().to_pylist()
    assert {row["id"]: (row["total"], row["lsn"]) for row in found} == {n * 100 + 1: (2.0, n * 100 + 10) for n in range(1, 80)}
    came = {row["lsn"] for row in hg.table("shop_orders").scan(since=then).to_arrow().to_pylist()}
    assert min(came) == 5_010, "older changes were applied again"


@pytest.mark.slow
def test_an_operation_that_is_no_change_of_a_row_ends_the_feed(address: str) -> None:
    with running(address, "change_feed.py", stdin=subprocess.PIPE) as program:
        said, _ = program.communicate(change(9_000, "t", None, None), timeout=WAIT_S)
    assert (program.returncode, "'t' at lsn 9000" in said) == (1, True)


@pytest.mark.slow
def test_the_notebook_loads_reads_corrects_and_looks_back(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CONNECT", address)
    names: dict[str, Any] = {}
    for number, code in enumerate(cells_of("first_hour.ipynb"), 1):
        exec(compile(code, f"cell {number}", "exec"), names)
    with duckdb.connect() as con:
        con.read_csv(str(unpack_csv(tmp_path)), na_values="NA").filter("month = 1").create_view("flights")
        (wanted,) = con.sql(
            "select count(*), count(arr_delay), count(*) filter (origin = 'JFK' and arr_delay > 60), "
            "count(*) filter (dest = 'HNL' and arr_delay is not null) from flights"
        ).fetchall()
    late, changed = names["late"], names["changed"]
    assert (names["rows_before"], names["rows_now"], len(late), len(changed)) == wanted


def test_every_program_is_on_the_page_and_in_a_test_and_short_enough_to_copy() -> None:
    assert len(PROGRAMS) == 7
    page, tests = text_of("docs/examples.md"), Path(__file__).read_text(encoding="utf-8")
    tests += text_of("tests/interop/test_sql_notebook.py")  # wants Hudi's jar
    for name in PROGRAMS:
        assert f"\n[examples/{name}](../examples/{name})\n" in page
        assert f'"{name}"' in tests or f'"{name.removesuffix(".py")}:app"' in tests
        assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= (65 if name.endswith(".py") else 200)
