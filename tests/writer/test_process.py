"""``python -m headgate_writer`` as a process: ready, drained, misconfigured; and what Prometheus reads."""

import asyncio
import json
import re
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from headgate_writer.settings import PROCESS_BYTES, WriterSettings
from support.processes import READY_S
from support.running_writer import TABLE, cluster, opened_channel
from support.scripted_owner import scripted_owner
from support.tables import create, rows

MIB = 1 << 20


@pytest.mark.slow
async def test_a_process_says_when_it_is_ready_and_drains_on_sigterm(tmp_path: Path) -> None:
    table = create(tmp_path)
    async with asyncio.timeout(READY_S), scripted_owner() as owner:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "headgate_writer", "--coordinator", owner.address, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with opened_channel(owner, table) as (link, owned, channel):
            ready = json.loads(await process.stdout.readline())
            assert ready == {"ready": link.address}
            await channel.append(rows(("a", 1, "x")))
            await channel.acked(received=1)
            process.send_signal(signal.SIGTERM)
            await link.left.wait()
            owned.barrier([link], 1, [])
            assert dict((await link.report("barrier_passed")).offsets) == {"c": 1}
            link.release()
            assert await process.wait() == 0


async def test_without_a_coordinator_to_ask_it_does_not_start(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "headgate_writer", stderr=asyncio.subprocess.PIPE)
    _, complaint = await process.communicate()
    assert process.returncode == 2
    assert b"--coordinator" in complaint


def test_half_of_what_the_process_leaves_holds_rows_and_a_quarter_of_that_may_wait() -> None:
    settings = WriterSettings(coordinator="127.0.0.1:1", memory_limit="512MiB")
    assert settings.buffer_bytes == (512 * MIB - PROCESS_BYTES) // 4
    assert settings.ingest_bytes * 4 == settings.buffer_bytes


def test_a_memory_limit_that_leaves_nothing_for_rows_is_refused() -> None:
    with pytest.raises(ValidationError, match="memory-limit"):
        WriterSettings(coordinator="127.0.0.1:1", memory_limit="200MiB")


@pytest.mark.parametrize(
    ("given", "warns"),
    [
        ({"cluster_listen": "0.0.0.0:0", "cluster_advertise": "w.example:0"}, True),
        ({"coordinator": ["127.0.0.1:1", "coordinator.example:1"]}, True),
        ({"listen": "0.0.0.0:0", "advertise": "w.example:0", "insecure": True}, True),
        ({"listen": "0.0.0.0:0", "advertise": "w.example:0", "insecure": True, "store": "s3://lake"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_writer_that_believes_others_about_places_is_one_that_has_no_store_and_is_not_alone(
    given: dict[str, Any], warns: bool
) -> None:
    given = {"coordinator": ["127.0.0.1:1"], **given}
    if "cluster_listen" in given:
        given |= dict.fromkeys(("cluster_cert", "cluster_key", "cluster_ca"), "file.pem")
    assert WriterSettings(**given).believes_others == warns


@pytest.mark.parametrize("with_store", [False, True])
async def test_a_writer_without_a_store_that_listens_for_others_warns_at_its_start(with_store: bool, tmp_path: Path) -> None:
    store = {"store": f"file://{tmp_path}"} if with_store else {}
    with structlog.testing.capture_logs() as logs:
        async with cluster(tmp_path, listen="0.0.0.0:0", advertise="127.0.0.1:0", insecure=True, **store):
            pass
    warned = [line for line in logs if "set store" in str(line["event"])]
    assert [(line["log_level"], line["listen"]) for line in warned] == ([] if with_store else [("warning", "0.0.0.0:0")])


def test_storage_options_are_read_as_pairs_or_as_json() -> None:
    pairs = WriterSettings(coordinator="127.0.0.1:1", storage_options="region=x, endpoint=http://h:1/?a=b")
    assert pairs.storage_options == {"region": "x", "endpoint": "http://h:1/?a=b"}
    assert WriterSettings(coordinator="127.0.0.1:1", storage_options='{"a": "b,c"}').storage_options == {"a": "b,c"}
    with pytest.raises(ValidationError, match="name=value"):
        WriterSettings(coordinator="127.0.0.1:1", storage_options="region")


async def test_prometheus_reads_rows_refusals_and_what_is_uncommitted(tmp_path: Path) -> None:
    async with cluster(tmp_path, metrics_listen="127.0.0.1:0") as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x"), ("b", 1, "x")))
        await channel.append(rows((None, 1, "bad")))  # type: ignore[arg-type]
        await channel.refused()
        await channel.send(7, 8, rows(("c", 1, "gap")))
        await channel.refused()
        url = f"http://{made.writers[0].metrics_address}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        assert f'headgate_writer_rows_total{{table="{TABLE}"}} 2.0' in text
        assert f'headgate_writer_channels{{table="{TABLE}"}} 1.0' in text
        assert re.search(rf'headgate_writer_channel_lag_offsets{{channel="[^"]+",table="{TABLE}"}} 2.0', text), text
        assert 'headgate_writer_refused_batches_total{code="CODE_NULL_KEY"} 1.0' in text
        assert 'headgate_writer_refused_batches_total{code="CODE_AFTER_FAILED_BATCH"} 1.0' in text
        assert f'headgate_writer_uncommitted_bytes{{table="{TABLE}"}} 0.0' not in text
