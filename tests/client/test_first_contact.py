"""A cluster to which there is no way is an error at once that names address and cause, or is waited for visibly."""

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import pytest

import headgate
from headgate import aio
from headgate.coordinators import CallFailedError
from headgate.failures import Failure
from headgate.unreachable import why_unreachable
from headgate_proto.api.v1 import errors_pb2 as err
from support.certificates import self_signed
from support.scripted_service import error, scripted_cluster

NOBODY = "127.0.0.1:1"
HOURS = 10_000.0
"""A timeout that no test waits for: what raises before it has not waited for it."""
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def other_program(answer: bytes) -> AsyncIterator[str]:
    """The address of a program that reads a little, answers and closes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                await reader.read(64)
                writer.write(answer)
                await writer.drain()
        finally:  # the test may end, and cancel this, while a client that has just come again says nothing
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def refusal(address: str, **options: object) -> str:
    async with aio.connect(address, timeout=HOURS, **options) as hg:  # type: ignore[arg-type]
        with pytest.raises(headgate.UnavailableError) as refused:
            await hg.table("t")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    return str(refused.value)


@pytest.mark.slow
async def test_nobody_listens() -> None:
    assert await refusal(NOBODY) == f"{NOBODY}: nothing listens there. Check the port, and that the coordinator runs."


@pytest.mark.slow
async def test_each_of_several_addresses_is_named() -> None:
    said = await refusal(f"{NOBODY},127.0.0.1:2")
    assert said.startswith(f"{NOBODY}: nothing listens there; 127.0.0.1:2: nothing listens there. Check")


@pytest.mark.slow
async def test_another_program_listens() -> None:
    async with other_program(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        assert (
            await refusal(address) == f"{address}: another kind of server answers. Check the port: this is not a coordinator's."
        )


@pytest.mark.slow
async def test_one_side_alone_speaks_tls_or_trusts_others(tmp_path: Path) -> None:
    ours, theirs = self_signed(tmp_path / "ours"), self_signed(tmp_path / "theirs")
    credentials = grpc.ssl_server_credentials([(ours.key.read_bytes(), ours.cert.read_bytes())])
    async with scripted_cluster(credentials=credentials) as cluster:
        address = cluster.coordinator
        assert await refusal(address, tls=False) == (
            f"{address}: the server closes the connection, as one with TLS does."
            " Name the file of the cluster's authority: tls=headgate.Tls(ca=...)."
        )
        assert "no trusted authority signed the server's certificate" in await refusal(address, tls=headgate.Tls(ca=theirs.cert))
    async with scripted_cluster() as cluster:
        address = cluster.coordinator
        assert f"{address}: the server speaks no TLS" in await refusal(address, tls=headgate.Tls(ca=ours.cert))


async def test_a_token_that_is_not_known_is_refused_at_once_with_the_address() -> None:
    async with scripted_cluster() as cluster, aio.connect(cluster.coordinator, token="t", timeout=HOURS) as hg:
        cluster.knobs.unary = [error(err.CODE_UNAUTHENTICATED, "the token is not known")]
        with pytest.raises(headgate.UnauthenticatedError, match=f"^{cluster.coordinator}: the token is not known"):
            await hg.table("t")


async def test_a_timeout_names_the_address_where_somebody_listens() -> None:
    said = iter(["localhost:1: the server closes the connection", "localhost:1: nothing listens there"])

    async def attempt(_: bool) -> None:
        message = next(said, None)
        if message is None:
            await asyncio.Event().wait()
        raise CallFailedError(Failure(headgate.UnavailableError(message or "", fix="-"), err.ACTION_RETRY, unreachable=True))

    async with aio.connect(NOBODY, timeout=HOURS, wait=HOURS) as hg:
        with pytest.raises(headgate.UnavailableError, match="within 1 s: localhost:1: the server closes the connection"):
            await hg.coordinators.retry(attempt, 1.0)


async def test_a_cluster_that_is_waited_for_is_found_when_it_comes_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted_cluster() as cluster, aio.connect(NOBODY, timeout=HOURS, wait=HOURS) as hg:
        waiting = asyncio.create_task(hg.tables())
        while not caplog.records:
            await asyncio.sleep(0.01)
        hg.coordinators._addresses[:] = [cluster.coordinator]
        assert await waiting == []
    logged = caplog.records[0]
    assert (logged.name, logged.levelno) == ("headgate", logging.WARNING)
    assert f"{NOBODY}: nothing listens there" in logged.getMessage()


@pytest.mark.slow
async def test_a_wait_that_is_over_is_the_error_of_an_attempt_and_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with aio.connect(NOBODY, timeout=30, wait=1.5) as hg:
        with pytest.raises(headgate.UnavailableError, match=f"^{NOBODY}: nothing listens there"):  # not: no answer within 30 s
            await hg.table("t")
    assert f"{NOBODY}: nothing listens there" in caplog.text


@pytest.mark.slow
async def test_a_cluster_that_was_there_is_waited_for_as_long_as_the_timeout_says() -> None:
    async with scripted_cluster() as cluster, aio.connect(cluster.coordinator, timeout=3.0) as hg:
        await hg.tables()
        await cluster.stop()
        with pytest.raises(headgate.UnavailableError, match=r"within 3 s.*nothing listens there"):
            await hg.tables()


def test_a_name_that_is_not_known_is_said() -> None:
    """In gRPC's words: asking a name server takes as long as the machine's network likes."""
    said = why_unreachable(
        "errors resolving no-such-host.invalid:7070: [field:hostname lookup error: Domain name not found]", tls=False
    )
    assert said is not None
    assert said.cause == "the host name is not known"


@pytest.mark.parametrize(
    "details",
    [
        "Socket closed",
        "recvmsg:Connection reset by peer",
        "Deadline Exceeded",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:1: connection attempt timed out before",
        "errors resolving hg:7070: [field:hostname lookup error:address lookup failed for hg:7070: DNS query cancelled]",
        "",
    ],
)
def test_a_broken_call_and_a_slow_server_are_not_taken_for_an_address_without_a_way(details: str) -> None:
    assert why_unreachable(details, tls=False) is None


def test_a_server_that_wants_a_certificate_leads_to_the_option_for_it() -> None:
    details = "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed"
    why = why_unreachable(details, tls=True)
    assert why is not None
    assert "headgate.Tls(certificate=..., key=...)" in why.fix


@pytest.mark.slow
def test_nothing_but_the_error_is_on_stderr(tmp_path: Path) -> None:
    """In an interpreter of its own: gRPC reads its verbosity once."""
    certificate = self_signed(tmp_path / "ours").cert
    program = f"""
import headgate, socket, sys, threading
listening = socket.create_server(("127.0.0.1", 0))
def talk():
    while True:
        taken = listening.accept()[0]
        taken.recv(64)
        taken.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
        taken.close()
threading.Thread(target=talk, daemon=True).start()
address = f"127.0.0.1:{{listening.getsockname()[1]}}"
with headgate.connect(address, tls=headgate.Tls(ca={str(certificate)!r})) as hg:
    try:
        hg.tables()
    except headgate.UnavailableError as error:
        print(error, file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    (line,) = ran.stderr.splitlines()
    assert "the server speaks no TLS" in line
