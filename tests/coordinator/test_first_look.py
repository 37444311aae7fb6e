"""What an installation lacks, a coordinator says: not ready meanwhile, and in the last line of its log when it ends."""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import structlog

from demo.ports import free_port
from demo.s3_server import moto
from headgate_runtime.environment import ENVIRONMENT
from support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.processes import READY_S, Process
from support.redis_server import start_redis
from support.running_coordinator import running_coordinator
from support.s3 import S3Endpoint, real_s3, s3_server

AT_ONCE, NEVER = "1ms", "0s"
MANY = 1000
"""Requests that a proxy spoils: more than there are."""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    with real_s3(tmp_path_factory.mktemp("s3")) as served:
        served.make_bucket("lake")
        yield served


@contextmanager
def coordinator(folder: Path, start_timeout: str, env: Mapping[str, str], *flags: str) -> Iterator[Process]:
    """It gets its arguments as pods do."""
    words = ["--log-format", "json", "--start-timeout", start_timeout, *flags]
    command = [sys.executable, "-m", "headgate_coordinator", *words]
    process = Process("coordinator", command, folder / "log", env={**ENVIRONMENT, **env}, program="headgate_coordinator")
    try:
        yield process
    finally:
        process.kill()


def lines(process: Process) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.log.read_text(encoding="utf-8").splitlines()]


def last_words(process: Process) -> str:
    """Why it ended, from the last line of its log, where `kubectl describe` looks; it was never ready."""
    assert process.wait_end() == 1
    said = lines(process)
    assert not [line for line in said if "ready" in line]
    assert said[-1]["event"] == "service cannot start", process.tail()
    assert len(json.dumps(said[-1])) < 2000, "kubectl shows no more"
    return str(said[-1]["why"])


def environment(s3: S3Endpoint, proxy: FaultyProxy) -> dict[str, str]:
    return {f"AWS_{name.upper()}": value for name, value in s3.options_at(proxy.url).items()}


def denies_writes(proxy: FaultyProxy) -> None:
    proxy.arm("PUT", *[403] * MANY)


def denies_all(proxy: FaultyProxy) -> None:
    proxy.refuse(403)


@pytest.mark.parametrize(
    ("bucket", "spoil", "wrong", "advice"),
    [
        ("lake", denies_writes, "403", "what the bucket's policy permits"),
        ("lake", denies_all, "403", "what the bucket's policy permits"),
        ("another", FaultyProxy.disarm, "NoSuchBucket", "Create the bucket"),
    ],
    ids=["writes denied", "all denied", "no bucket"],
)
def test_it_ends_by_a_store_that_takes_no_tables_and_says_what_to_do(
    bucket: str, spoil: Callable[[FaultyProxy], None], wrong: str, advice: str, s3: S3Endpoint, redis: str, tmp_path: Path
) -> None:
    with faulty_proxy(s3.url) as proxy:
        spoil(proxy)
        flags = ("--store", f"s3://{bucket}/{tmp_path.name}", "--redis", f"redis://{redis}/0", "--cluster", tmp_path.name)
        with coordinator(tmp_path, AT_ONCE, environment(s3, proxy), *flags) as process:
            why = last_words(process)
    assert wrong in why
    assert advice in why


@pytest.mark.slow
def test_it_ends_by_a_store_that_ignores_conditions_however_long_it_may_wait(redis: str, tmp_path: Path) -> None:
    # moto: versitygw refuses a request of which the proxy has taken a signed header.
    with s3_server(moto, tmp_path / "s3") as served, faulty_proxy(served.url) as proxy:
        served.make_bucket("lake")
        proxy.arm("PUT", *[Fault.DROP_CONDITION] * MANY)
        flags = ("--store", "s3://lake/t", "--redis", f"redis://{redis}/0", "--cluster", tmp_path.name)
        with coordinator(tmp_path, NEVER, environment(served, proxy), *flags) as process:
            why = last_words(process)
    assert "ignores conditional writes" in why
    assert "store that honours conditional creates" in why


def test_it_ends_without_redis_and_says_where_it_looked_but_no_password(tmp_path: Path) -> None:
    port = free_port()
    env = {"HEADGATE_REDIS": f"redis://user:hunter2@127.0.0.1:{port}/0"}
    with coordinator(tmp_path, AT_ONCE, env, "--store", str(tmp_path / "store")) as process:
        why = last_words(process)
        assert f"Redis at redis://127.0.0.1:{port}/0 does not answer" in why
        assert "ConnectionError" in why
        assert "address, user, password and certificates" in why
        assert "hunter2" not in process.log.read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_says_what_it_waits_for_and_is_ready_once_that_is_there(tmp_path: Path, s3: S3Endpoint) -> None:
    """Neither a Redis nor a store that comes later makes it end."""
    port = free_port()
    flags = ("--store", "s3://lake/later", "--redis", f"redis://127.0.0.1:{port}/0")
    with faulty_proxy(s3.url) as proxy:
        proxy.refuse(403)
        with coordinator(tmp_path, NEVER, environment(s3, proxy), *flags) as process:
            said = _wait_for_events(process, "not ready: it waits for Redis", "not ready: it waits for the store")
            assert not [line for line in said if "ready" in line]
            redis = start_redis(tmp_path / "redis.log", port)
            try:
                proxy.disarm()
                process.wait_ready()
                assert process.terminate() == 0
            finally:
                redis.kill()
    assert not [key for key in s3.keys("lake") if key.startswith("later/")], "the test of the store leaves nothing"


def _wait_for_events(process: Process, *events: str) -> list[dict[str, Any]]:
    for _ in range(round(READY_S / 0.05)):
        complete = process.log.read_text(encoding="utf-8").rpartition("\n")[0]
        said = [json.loads(line) for line in complete.splitlines()]
        if {*events} <= {line.get("event") for line in said}:
            return said
        threading.Event().wait(0.05)
    raise AssertionError(f"it never said {events}\n{process.tail()}")


async def test_a_store_with_tables_is_taken_as_it_is(tmp_path: Path, redis: str, s3: S3Endpoint) -> None:
    """A store that denies writes for a while must not keep a coordinator that is restarted meanwhile from serving."""
    with faulty_proxy(s3.url) as proxy:
        options = s3.options_at(proxy.url)
        store: Any = "s3://lake/filled"
        async with running_coordinator(store, redis, storage_options=options, cluster=tmp_path.name) as first:
            await first.create("t", pa.schema([("id", pa.int64())]))
        denies_writes(proxy)
        with structlog.testing.capture_logs() as logs:
            async with running_coordinator(
                store, redis, storage_options=options, cluster=tmp_path.name, start_timeout=1e-3
            ) as second:
                assert (await second.status("t")).name == "t"
    assert not [line for line in logs if str(line["event"]).startswith("not ready")]
