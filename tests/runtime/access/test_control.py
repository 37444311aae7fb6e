"""Access control of a process: who needs credentials, and how it follows its file, its clock and the calls that run."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.access.control import AccessControl
from headgate_runtime.access.identity import ANONYMOUS, CLUSTER, Credentials, Identity, Unauthenticated
from headgate_runtime.access.quotas import UNLIMITED
from headgate_runtime.access.rights import Right
from headgate_runtime.settings import ServiceSettings
from support.access import access_text, role, token_line
from support.ticking_clock import TickingClock

T = "t"


class Door:
    """A running AccessControl and the file that it reads."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.clock = TickingClock()
        path.write_text(text)
        self.control = AccessControl(ServiceSettings(access=str(path), cluster_token="c"), self.clock)

    def identity(self, token: str) -> Identity:
        found = self.authenticate(token)
        assert isinstance(found, Identity)
        return found

    def authenticate(self, token: str, right: Right | None = Right.READ) -> Identity | Unauthenticated:
        return self.control.authenticate(Credentials(f"Bearer {token}"), right)

    def may(self, token: str, right: Right) -> bool:
        return self.control.decide(self.identity(token), right, T) is None

    async def write(self, text: str) -> None:
        """Returns when it was looked at."""
        self.path.write_text(text)
        await self.clock.tick()


@contextlib.asynccontextmanager
async def door(path: Path, text: str) -> AsyncIterator[Door]:
    made = Door(path, text)
    running = asyncio.create_task(made.control.run())
    try:
        yield made
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.toml"


ANN = {"a": "ann"}
READS = access_text(ANN, role("ann", "read"))
WRITES = access_text(ANN, role("ann", "write"))


def test_without_a_file_and_a_token_everybody_may_do_everything() -> None:
    control = AccessControl(ServiceSettings(), TickingClock())
    for right in (None, *Right):
        for credentials in (Credentials(), Credentials("Bearer whatever")):
            assert control.authenticate(credentials, right) == ANONYMOUS
        assert control.decide(ANONYMOUS, right, T) is None


def test_with_an_access_file_a_principal_has_the_default_quotas_and_without_one_none(path: Path) -> None:
    ann = Identity("ann")
    assert AccessControl(ServiceSettings(), TickingClock()).usage_of(ann) == UNLIMITED
    assert Door(path, WRITES).control.usage_of(ann).channels == 1000
    assert Door(path, WRITES + '[[quotas]]\nprincipals = ["ann"]\nchannels = 2000').control.usage_of(ann).channels == 2000


def test_the_clusters_token_alone_guards_the_clusters_methods_alone() -> None:
    control = AccessControl(ServiceSettings(cluster_token="c"), TickingClock())
    assert isinstance(control.authenticate(Credentials(), None), Unauthenticated)
    assert control.authenticate(Credentials("Bearer c"), None) == CLUSTER
    assert control.authenticate(Credentials(), Right.ADMIN) == ANONYMOUS
    assert control.decide(ANONYMOUS, Right.ADMIN, T) is None


async def test_a_new_role_counts_from_the_next_look_at_the_file(path: Path) -> None:
    async with door(path, READS) as made:
        assert not made.may("a", Right.WRITE)
        await made.write(WRITES)
        assert made.may("a", Right.WRITE)
        await made.write(READS)
        assert not made.may("a", Right.WRITE)


async def test_a_file_of_the_same_size_and_time_is_noticed(path: Path) -> None:
    async with door(path, READS) as made:
        before = path.stat()
        path.write_text(READS.replace('"*"', '"x"'))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        await made.clock.tick()
        assert not made.may("a", Right.READ)


async def test_a_token_that_leaves_the_file_is_refused_and_one_that_comes_is_taken(path: Path) -> None:
    async with door(path, READS) as made:
        await made.write(access_text({"b": "ann"}, role("ann", "read")))
        assert isinstance(made.authenticate("a"), Unauthenticated)
        assert made.identity("b").principal == "ann"


@pytest.mark.parametrize("how", ["wrong", "gone", "no text", "huge"])
async def test_a_file_that_is_wrong_changes_nothing_and_is_an_alarm_until_it_is_right(how: str, path: Path) -> None:
    async with door(path, WRITES) as made:
        match how:
            case "wrong":
                path.write_text(WRITES + "\n[colours]\n")
            case "gone":
                path.unlink()
            case "no text":
                path.write_bytes(b"\xff\xfe")
            case _:
                path.write_bytes(b"#" * (16 * 2**20 + 1))
        await made.clock.tick()
        assert made.may("a", Right.WRITE)
        [alarm] = made.control.alarms
        assert str(path) in alarm
        assert how != "wrong" or "colours" in alarm
        await made.clock.tick()
        assert made.control.alarms == [alarm]
        await made.write(WRITES)
        assert made.control.alarms == []


async def test_a_file_that_is_cut_before_its_end_revokes_nothing_and_is_an_alarm_until_it_is_whole(path: Path) -> None:
    """As one is while it is being written."""
    async with door(path, f"{WRITES}\n[end]\n") as made:
        for cut in ("", "[tokens]\n", WRITES):
            await made.write(cut)
            assert made.may("a", Right.WRITE)
            [alarm] = made.control.alarms
            assert "before [end]" in alarm
        await made.write("[end]")
        assert made.control.alarms == []
        assert isinstance(made.authenticate("a"), Unauthenticated)


async def test_an_expired_token_is_refused_at_its_time(path: Path) -> None:
    text = access_text({}, role("ann", "read")).replace(
        "[tokens]\n", "[tokens]\n" + token_line("a", "ann", "1970-01-01T00:05:00Z")
    )
    async with door(path, text) as made:
        made.clock.now = 299.9
        assert made.identity("a").principal == "ann"
        made.clock.now = 300.0
        assert isinstance(made.authenticate("a"), Unauthenticated)


class Stream:
    """A call that runs; ``ended``: the codes with which it was ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def end(self, error: errors_pb2.Error) -> None:
        self.ended.append(errors_pb2.Code.Name(error.code))


def running(made: Door, stream: Stream, channel: str = "c") -> contextlib.AbstractContextManager[None]:
    return made.control.ended_without_right(made.identity("a"), Right.WRITE, T, channel, stream.end)


async def test_a_stream_ends_once_when_its_token_is_revoked_and_others_go_on(path: Path) -> None:
    both = access_text({"a": "ann", "b": "bob"}, role("ann", "write"), role("bob", "write"))
    async with door(path, both) as made:
        ann, bob = Stream(), Stream()
        with running(made, ann), made.control.ended_without_right(made.identity("b"), Right.WRITE, T, "c", bob.end):
            await made.clock.tick()
            assert ann.ended == []
            await made.write(access_text({"b": "bob"}, role("ann", "write"), role("bob", "write")))
            await made.clock.tick()
            assert (ann.ended, bob.ended) == (["CODE_UNAUTHENTICATED"], [])


async def test_a_stream_ends_when_its_token_expires_without_a_change_of_the_file(path: Path) -> None:
    text = access_text({}, role("ann", "write")).replace(
        "[tokens]\n", "[tokens]\n" + token_line("a", "ann", "1970-01-01T00:05:00Z")
    )
    async with door(path, text) as made:
        stream = Stream()
        with running(made, stream):
            made.clock.now = 299.0
            await made.clock.tick()
            assert stream.ended == []
            made.clock.now = 300.0
            await made.clock.tick()
            assert stream.ended == ["CODE_UNAUTHENTICATED"]


async def test_a_stream_goes_on_past_the_first_end_of_a_token_that_was_extended(path: Path) -> None:
    def text(end: str) -> str:
        return access_text({}, role("ann", "write")).replace("[tokens]\n", "[tokens]\n" + token_line("a", "ann", end))

    async with door(path, text("1970-01-01T00:05:00Z")) as made:
        stream = Stream()
        with running(made, stream):
            await made.write(text("1970-01-01T00:10:00Z"))
            made.clock.now = 599.0
            await made.clock.tick()
            assert stream.ended == []
            made.clock.now = 600.0
            await made.clock.tick()
            assert stream.ended == ["CODE_UNAUTHENTICATED"]


@pytest.mark.parametrize("left", [role("ann", "read"), role("ann", "write", tables=["u"]), role("ann", "write", channels=["x"])])
async def test_a_stream_ends_when_its_role_is_taken_away(left: str, path: Path) -> None:
    async with door(path, WRITES) as made:
        stream = Stream()
        with running(made, stream):
            await made.write(access_text(ANN, left))
            assert stream.ended == ["CODE_PERMISSION_DENIED"]


async def test_an_identity_that_no_token_of_the_file_proves_follows_its_roles(path: Path) -> None:
    async with door(path, WRITES) as made:
        stream, signed = Stream(), Identity("ann", credential="signed by an issuer")
        with made.control.ended_without_right(signed, Right.WRITE, T, "c", stream.end):
            await made.write(access_text({}, role("ann", "write")))
            await made.clock.tick()
            assert stream.ended == []
            await made.write(access_text({}, role("ann", "read")))
            assert stream.ended == ["CODE_PERMISSION_DENIED"]


async def test_a_stream_that_has_ended_by_itself_is_not_ended_again(path: Path) -> None:
    async with door(path, WRITES) as made:
        stream = Stream()
        with running(made, stream):
            pass
        await made.write(access_text({}))
        assert stream.ended == []
