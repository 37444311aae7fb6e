"""The progress of a load is that of its committed rows, and a load that waits says for what."""

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.dev_cluster import DevCluster
from demo.ports import free_port
from headgate_cli.load.counts import LoadCounts
from headgate_cli.load.progress import LoadProgress
from headgate_cli.output import Output
from headgate_cli.reading.source import FilePiece
from headgate_cli.reading.sources import open_source
from headgate_tables.system import SystemClock

NOTHING = pa.record_batch({"id": pa.array([], pa.int64())})


def piece(last_row: int, done: int) -> FilePiece:
    return FilePiece(NOTHING, last_row, done)


def test_a_file_is_as_far_as_its_last_committed_piece() -> None:
    counts = LoadCounts(skip=100, now=50.0)
    for last_row, done in ((200, 10), (300, 20), (400, 30)):
        counts.piece_sent(piece(last_row, done))
    assert (counts.sent, counts.committed, counts.done) == (400, 100, 0)
    assert counts.rows_committed(299, now=52.0)
    assert (counts.committed, counts.done, counts.moved) == (299, 10, 52.0)
    assert not counts.rows_committed(299, now=53.0)
    assert counts.moved == 52.0
    assert counts.rows_committed(400, now=60.0)
    assert (counts.committed, counts.done, counts.rows_per_s(60.0)) == (400, 30, 30)


def test_pieces_of_a_batch_are_done_with_its_last_one_and_have_about_equal_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["x" * 1000] * 20_000}), path)
    ends = 0
    for each in open_source(path, "parquet", None).pieces(0):
        assert each.done <= each.last_row
        assert each.rows.num_rows > 1000
        ends += each.done == each.last_row
    assert ends > 1


@dataclass
class Committed:
    committed_offset: int = 0


def test_progress_never_runs_ahead_of_what_is_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": pa.array(range(300_000), pa.int64())}), path)
    channel = Committed()
    source = open_source(path, "parquet", None)
    with LoadProgress(Output(json=True), source, channel, str, SystemClock()) as progress:
        for each in source.pieces(0):
            progress.sent(each)
            channel.committed_offset = each.last_row // 2
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(each["done"] <= each["committed"] < each["row"] for each in events[1:-1])
    assert events[-2]["committed"] > 0
    assert (events[-1]["done"], events[-1]["total"], events[-1]["unit"]) == (300_000, 300_000, "rows")


@pytest.mark.slow
def test_a_load_whose_cluster_stands_still_says_so_and_goes_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = 1_000_000
    pq.write_table(pa.table({"id": pa.array(range(rows), pa.int64()), "text": ["x" * 200] * rows}), path)
    with DevCluster((tmp_path / "tables").as_uri(), tmp_path / "logs", "500ms", free_port()) as cluster:
        command = ["load", str(path), "--table", "waits", "--create", "--key", "id", "--buckets", "1", "--connect"]
        whole = [sys.executable, "-m", "headgate_cli", *command, cluster.address]
        pids = {fields.get("name"): fields["pid"] for _, fields in cluster.events if fields["event"] == "started"}
        coordinator, stopped = pids["coordinator-1"], 0
        said = []
        with subprocess.Popen([*whole, "--json"], stdout=subprocess.PIPE) as load:
            assert isinstance(load.stdout, io.BufferedReader)
            for line in load.stdout:
                said.append(json.loads(line))
                if said[-1].get("committed", 0) > 0 and coordinator:
                    os.kill(coordinator, signal.SIGSTOP)
                    stopped, coordinator = coordinator, 0
                elif said[-1].get("waiting") and stopped:
                    os.kill(stopped, signal.SIGCONT)
                    stopped = 0
        assert load.returncode == 0
        waiting = {each["waiting"] for each in said if each["event"] == "progress"} - {""}
        assert any(f"no answer from {cluster.address}" in each and "trying again" in each for each in waiting)
        assert (said[-1]["event"], said[-1]["rows"], said[-2]["waiting"]) == ("loaded", rows, "")
