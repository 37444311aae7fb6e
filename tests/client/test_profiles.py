"""How a program finds the credentials of a cluster on this machine, and when it must not."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate
from headgate.aio import connect
from headgate.profiles import PROFILES, Profile, find_profile, lock_profile, state_folder
from support.certificates import self_signed

PROFILE = Profile("secret", "PEM")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (path := tmp_path / "headgate" / PROFILES).mkdir(parents=True)
    return path


def write(folder: Path, port: int = 7070, profile: Profile = PROFILE, mode: int = 0o600) -> Path:
    path = folder / f"{port}.json"
    path.write_text(profile.encode())
    path.chmod(mode)
    return path


@pytest.fixture
def written(folder: Path) -> Iterator[Path]:
    """Of a cluster that runs."""
    path = write(folder)
    with path.open() as held:
        lock_profile(held)
        yield path


def find(*addresses: str) -> Profile | None:
    return find_profile(addresses, os.environ)


@pytest.mark.parametrize("address", ["localhost:7070", "127.0.0.1:7070", "127.9.9.9:07070", "[::1]:7070"])
def test_a_cluster_on_this_machine_is_found_by_its_port(address: str, written: Path) -> None:
    assert find(address) == PROFILE


@pytest.mark.parametrize("address", ["localhost:7071", "example.org:7070", "10.0.0.1:7070", "localhost.example.org:7070"])
def test_another_port_or_machine_gets_no_credentials(address: str, written: Path) -> None:
    assert find(address) is None
    assert find("localhost:7070", address) is None


def test_the_coordinators_of_one_cluster_are_found_together_and_those_of_two_not(written: Path) -> None:
    for port, profile in ((7071, PROFILE), (7072, Profile("other", "PEM"))):
        with write(written.parent, port, profile).open() as held:
            lock_profile(held)
            assert (find("localhost:7070", f"localhost:{port}") is None) == (profile != PROFILE)


def test_a_profile_counts_while_its_writer_runs(folder: Path) -> None:
    path = write(folder)
    assert find("localhost:7070") is None
    with path.open() as held:
        lock_profile(held)
        assert find("localhost:7070") == PROFILE
        assert find("localhost:7070") == PROFILE, "the first look must not have taken it"
    assert find("localhost:7070") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_profile_that_others_may_open_is_refused(mode: int, written: Path) -> None:
    written.chmod(mode)
    with pytest.raises(headgate.InvalidArgumentError, match="others may open it"):
        headgate.connect("localhost:7070")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"token": "t"}', '{"token": "t", "authority": "a", "more": 1}', "\xff"])
def test_a_file_that_is_no_profile_is_refused_without_its_content(content: str, written: Path) -> None:
    written.write_bytes(content.encode("latin-1"))
    with pytest.raises(headgate.InvalidArgumentError, match="no profile"):
        find("localhost:7070")


async def test_what_the_caller_gives_counts_and_not_the_profile(written: Path, tmp_path: Path) -> None:
    authority = self_signed(tmp_path / "other").cert
    assert connect("localhost:7070").transport.shown.token == "secret"
    for transport in (
        connect("localhost:7070", token="mine").transport,
        connect("localhost:7070", tls=headgate.Tls(ca=authority)).transport,
        connect("localhost:7070", tls=False).transport,
    ):
        assert transport.shown.token != "secret"
    assert connect("localhost:7070", tls=False).transport.shown.pem is None
    assert "secret" not in repr(PROFILE)


async def test_a_cluster_that_has_ended_is_not_called_in_plaintext(folder: Path, tmp_path: Path) -> None:
    """Another program may listen on its port by now. A profile that does not count changes nothing, either."""
    authority = self_signed(tmp_path / "authority").cert.read_text()
    path = write(folder, profile=Profile("secret", authority))
    with path.open() as held:
        lock_profile(held)
        transport = connect("localhost:7070").transport
        path.chmod(0o640)
        shown = transport.renewed()
        assert (shown.token, shown.pem and shown.pem.ca) == ("secret", authority.encode())
    path.unlink()
    assert transport.renewed() == shown


def test_without_the_variable_state_lies_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_folder({}) == Path("/home/ann/.local/state/headgate")
    assert state_folder({"XDG_STATE_HOME": ""}) == Path("/home/ann/.local/state/headgate")
