"""Who is asked for the time, and what counts as another machine."""

import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from demo.ports import free_port
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.redis_access import is_this_host, open_redis
from headgate_coordinator.leadership.witnesses import endpoint_of, server_time_ms


@pytest.fixture
def refusing_store() -> Iterator[str]:
    """Answers 403 to everything, as an endpoint does to those who do not sign."""

    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403)

        def log_message(self, *args: object) -> None:
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


NEAR_MS = 60_000
"""The same clock is read twice; a busy machine may need long between the two."""


def test_a_store_that_refuses_still_says_what_time_it_is(refusing_store: str) -> None:
    said = server_time_ms(refusing_store)
    assert said is not None
    assert abs(said - time.time() * 1000) < NEAR_MS


def test_a_store_that_does_not_answer_says_nothing() -> None:
    assert server_time_ms(f"http://127.0.0.1:{free_port()}") is None
    assert server_time_ms("http://") is None


def test_an_endpoint_is_that_of_the_options_then_of_the_environment_then_of_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert endpoint_of("file:///data", {}) == ""
    assert endpoint_of("s3://b/p", {}) == "https://s3.us-east-1.amazonaws.com"
    assert endpoint_of("s3://b/p", {"region": "eu-west-1"}) == "https://s3.eu-west-1.amazonaws.com"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    assert endpoint_of("s3://b/p", {}) == "http://store:9000"
    assert endpoint_of("s3://b/p", {"aws_endpoint": "http://other"}) == "http://other"


def test_endpoints_of_google_and_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert endpoint_of("gs://b/p", {}) == "https://storage.googleapis.com"
    assert endpoint_of("gs://b/p", {"base_url": "http://other"}) == "http://other"
    assert endpoint_of("az://c/p", {}) == ""
    assert endpoint_of("az://c/p", {"account_name": "a"}) == "https://a.blob.core.windows.net"
    assert endpoint_of("abfss://c@a.dfs.core.windows.net/p", {}) == "https://a.blob.core.windows.net"
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://other/a")
    assert endpoint_of("abfss://c@a.dfs.core.windows.net/p", {}) == "http://other/a"


def test_only_what_is_certainly_on_this_machine_is_here() -> None:
    assert [
        host for host in ("", "localhost", "127.0.0.1", "127.1.2.3", "::1", "10.0.0.1", "redis") if not is_this_host(host)
    ] == [
        "10.0.0.1",
        "redis",
    ]


async def test_redis_says_what_time_it_is(redis: str) -> None:
    leases = Leases(open_redis(f"redis://{redis}/0"), "test", Holder("one", "1", "one:1"), ttl_s=5.0)
    said = await leases.time_ms()
    await leases.close()
    assert said is not None
    assert abs(said - time.time() * 1000) < NEAR_MS
