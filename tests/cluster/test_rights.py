"""What principals with roles see and do, through the SDK, and that what is taken away ends while rows are sent."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headgate
from support.access import access_text, role
from support.bad_batches import SCHEMA
from support.cluster import Cluster
from support.processes import READY_S
from support.scene import keys_of

TOKENS = {"admin-token": "admin", "ann-token": "ann", "bob-token": "bob", "eve-token": "eve", "ops-token": "ops"}
ROLES = {
    "admin": role("admin", "admin"),
    "ann": role("ann", "write", "create", tables=["ann_*"], channels=["{principal}/"]),
    "bob": role("bob", "read", tables=["ann_shared"]),
    "ops": role("ops", "operate", tables=["ann_shared"]),
}
TABLES = {"ann_shared", "ann_own", "secret"}
"""There are more, which single tests make."""
ROW = {"part": "p", "ts": 1, "note": ""}
COLUMNS: dict[str, Any] = {"key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2}


class Guarded:
    """A cluster and the access file of its services."""

    def __init__(self, folder: Path) -> None:
        self.access, self.audit = folder / "access.toml", folder / "audit.jsonl"
        self.restore()
        # All processes of this test append to one file, which lines of this length survive.
        flags = ["--access", str(self.access), "--access-reload", "100ms", "--audit-log", str(self.audit)]
        self.cluster = Cluster(
            folder / "cluster",
            writers=1,
            options={
                "coordinator": [*flags, "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"],
                "writer": flags,
            },
            env={"HEADGATE_CLUSTER_TOKEN": "cluster-token"},
        )

    def restore(self, **changed: str) -> None:
        """Everybody's role, but for those that are changed."""
        self.replace_access(access_text(TOKENS, *{**ROLES, **changed}.values()))

    def revoke(self, token: str) -> None:
        left = {each: principal for each, principal in TOKENS.items() if each != token}
        self.replace_access(access_text(left, *ROLES.values()))

    def replace_access(self, text: str) -> None:
        """All at once: services would also read half a file, and every token that is not in it yet would be revoked."""
        whole = self.access.with_suffix(".new")
        whole.write_text(text)
        whole.replace(self.access)

    def connect(self, principal: str) -> headgate.Headgate:
        return headgate.connect(self.cluster.address, token=f"{principal}-token", timeout=READY_S, wait=READY_S)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("rights"))
    with made.cluster:
        with made.connect("admin") as hg:
            for name in TABLES:
                hg.create_table(name, SCHEMA, **COLUMNS)
            for _ in again():
                if {table.name for table in hg.status().tables} >= TABLES:
                    break
        yield made


@pytest.fixture
def guarded(running: Guarded) -> Iterator[Guarded]:
    yield running
    running.restore()
    with running.connect("ann") as hg:
        until(lambda: hg.table("ann_own").channel("ann/again").close())  # coordinator and writer have read the file


def again() -> Iterator[None]:
    """Again and again, with a pause, until the test has had its time."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        yield
        time.sleep(0.05)
    pytest.fail("it did not happen within 60 s")


def until(call: Any) -> Any:
    """Its result, once it is not refused any more."""
    for _ in again():
        with contextlib.suppress(headgate.UnauthenticatedError, headgate.PermissionDeniedError):
            return call()
    return None


def until_refused(call: Any, error: type[Exception]) -> None:
    """Returns once it is refused."""
    for _ in again():
        try:
            call()
        except error:
            return


@pytest.mark.slow
@pytest.mark.parametrize(
    ("principal", "tables"),
    [("admin", TABLES), ("ann", {"ann_own", "ann_shared"}), ("bob", {"ann_shared"}), ("ops", {"ann_shared"})],
)
def test_lists_hold_what_the_caller_may_read(principal: str, tables: set[str], guarded: Guarded) -> None:
    with guarded.connect(principal) as hg:
        assert TABLES & {table.name for table in hg.tables()} == tables
        assert TABLES & {table.name for table in hg.status().tables} == tables


def test_a_table_that_may_not_be_read_is_refused_as_one_that_is_not_there(guarded: Guarded) -> None:
    with guarded.connect("bob") as hg:
        for ask in (hg.table, hg.status):
            said = []
            for name in ("secret", "nowhere"):
                with pytest.raises(headgate.PermissionDeniedError, match="lacks the right `read`") as refused:
                    ask(name)
                said.append(str(refused.value).replace(name, ""))
            assert said[0] == said[1]


def test_a_principal_without_a_role_may_do_nothing(guarded: Guarded) -> None:
    with guarded.connect("eve") as hg:
        for call in (hg.tables, hg.status, lambda: hg.create_table("ann_x", SCHEMA, **COLUMNS)):
            with pytest.raises(headgate.PermissionDeniedError, match="'eve' lacks the right"):
                call()


def test_rows_come_through_channels_of_the_own_prefix_alone(guarded: Guarded) -> None:
    with guarded.connect("ann") as hg:
        table = hg.table("ann_own")
        with pytest.raises(headgate.PermissionDeniedError, match="through the channel 'loader'") as refused:
            table.channel("loader")
        assert "Begin the channel's name with 'ann/'" in refused.value.fix
        with table.channel("ann/1") as channel:
            channel.upsert([{"id": "own prefix", **ROW}])
    with guarded.connect("bob") as hg, pytest.raises(headgate.PermissionDeniedError, match="`write`"):
        hg.table("ann_shared").channel("bob/1")


def test_who_writes_and_may_not_operate_learns_which_right_a_list_of_channels_needs(guarded: Guarded) -> None:
    with (
        guarded.connect("ann") as hg,
        pytest.raises(headgate.PermissionDeniedError, match="'ann' lacks the right `operate` on the table 'ann_own'"),
    ):
        hg.table("ann_own").channels()


def test_tables_are_made_under_names_that_the_role_names(guarded: Guarded) -> None:
    with guarded.connect("ann") as hg:
        hg.create_table("ann_new", SCHEMA, **COLUMNS)
        with pytest.raises(headgate.PermissionDeniedError, match="the table 'secret2'"):
            hg.create_table("secret2", SCHEMA, **COLUMNS)


def write_until_ended(guarded: Guarded, channel: str, change: Any) -> tuple[headgate.HeadgateError, int, int]:
    """Sends rows to ann_shared until ``change`` ends the channel. Returns its error, how many rows were confirmed and sent."""
    confirmed = sent = 0
    with guarded.connect("ann") as hg:
        open_channel = hg.table("ann_shared").channel(channel)
        try:
            for _ in again():
                sent += 1
                open_channel.upsert([{"id": f"{channel} {sent}", **ROW}])
                open_channel.flush()
                confirmed = sent
                if sent == 3:
                    change()
        except headgate.HeadgateError as ended:
            return ended, confirmed, sent
    raise AssertionError("unreachable")


@pytest.mark.parametrize("how", ["token", "role"])
def test_a_channel_ends_while_it_sends_when_its_right_is_taken_away(how: str, guarded: Guarded) -> None:
    """What was confirmed is there; a channel of another principal goes on."""
    with guarded.connect("admin") as hg:
        other = hg.table("ann_shared").channel(f"other {how}")
        other.upsert([{"id": f"other {how} 1", **ROW}])
        if how == "token":
            ended, confirmed, sent = write_until_ended(guarded, "ann/token", lambda: guarded.revoke("ann-token"))
            assert isinstance(ended, headgate.UnauthenticatedError)
            assert "token" in str(ended)
        else:
            taken = role("ann", "write", tables=["ann_own"])
            ended, confirmed, sent = write_until_ended(guarded, "ann/role", lambda: guarded.restore(ann=taken))
            assert isinstance(ended, headgate.PermissionDeniedError)
            assert "the table 'ann_shared'" in str(ended)
        other.upsert([{"id": f"other {how} 2", **ROW}])
        other.close()
        there = keys_of(hg.table("ann_shared").info.url)
    own = sum(key.startswith(f"ann/{how} ") for key in there)
    assert 3 <= confirmed <= own <= sent
    assert {f"other {how} 1", f"other {how} 2"} <= set(there)


def test_a_second_token_takes_over_from_the_first(guarded: Guarded) -> None:
    """Rotation: both count for a time; a channel belongs to the principal, not to the token."""
    with guarded.connect("ann") as hg, hg.table("ann_own").channel("ann/rotated") as channel:
        channel.upsert([{"id": "by the old", **ROW}])
    both = {**TOKENS, "new-ann-token": "ann"}
    guarded.replace_access(access_text(both, *ROLES.values()))
    with headgate.connect(guarded.cluster.address, token="new-ann-token", timeout=READY_S, wait=READY_S) as hg:
        table = until(lambda: hg.table("ann_own"))
        with guarded.connect("ann") as old:
            old.table("ann_own")
        del both["ann-token"]
        guarded.replace_access(access_text(both, *ROLES.values()))
        with guarded.connect("ann") as old:
            until_refused(lambda: old.table("ann_own"), headgate.UnauthenticatedError)
        with until(lambda: table.channel("ann/rotated")) as channel:
            assert channel.committed_offset == 1
            channel.upsert([{"id": "by the new", **ROW}])
    assert {"by the old", "by the new"} <= set(keys_of(table.info.url))


def test_a_wrong_access_file_is_an_alarm_for_operators_and_what_it_said_before_holds(guarded: Guarded) -> None:
    text = guarded.access.read_text()
    guarded.replace_access(text + '\n[[roles]]\nprincipals = ["bob"]\nmay = ["everything"]\ntables = ["*"]\n')
    line = text.count("\n") + 2
    with guarded.connect("ops") as ops, guarded.connect("ann") as ann:
        for _ in again():
            if alarms := ops.status().alarms:
                break
        assert f"line {line}: may holds 'everything'" in alarms[0]
        assert ann.status().alarms == ()
        assert {"ann_own", "ann_shared"} <= {table.name for table in ann.tables()}
        guarded.restore()
        for _ in again():
            if not ops.status().alarms:
                break


def test_the_audit_log_has_what_was_done_and_what_was_refused_and_no_rows(guarded: Guarded) -> None:
    with guarded.connect("ann") as hg:
        hg.create_table("ann_logged", SCHEMA, **COLUMNS)
        with hg.table("ann_logged").channel("ann/logged") as channel:
            channel.upsert([{"id": "hunter2", **ROW}])
    with guarded.connect("bob") as hg, pytest.raises(headgate.PermissionDeniedError):
        hg.table("ann_logged")
    with headgate.connect(guarded.cluster.address, token="unknown") as hg, pytest.raises(headgate.UnauthenticatedError):
        hg.tables()

    def said(line: dict[str, Any]) -> tuple[Any, ...]:
        return line["principal"], line["method"].rpartition("/")[2], line.get("channel"), line["outcome"]

    wanted = [
        ("ann", "CreateTable", None, "OK"),
        ("ann", "Append", "ann/logged", "OK"),
        ("bob", "DescribeTable", None, "PERMISSION_DENIED"),
    ]
    for _ in again():
        found = [said(line) for line in guarded.lines() if line.get("table") == "ann_logged"]
        if found == wanted and (None, "ListTables", None, "UNAUTHENTICATED") in [said(line) for line in guarded.lines()]:
            break
    assert all(line["peer"].startswith("ipv4:127.0.0.1:") and line["time"] for line in guarded.lines())
    text = guarded.audit.read_text()
    assert not any(secret in text for secret in ("hunter2", "ann-token", "unknown", "cluster-token"))
