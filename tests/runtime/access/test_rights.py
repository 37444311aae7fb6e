"""The decision about one right of one identity on one table."""

from typing import Any

import pytest

from headgate_runtime.access.identity import ANONYMOUS, CLUSTER, Identity
from headgate_runtime.access.rights import Allowed, Denied, Policy, Right, Role

ANN = Identity("ann")


def role(*rights: Right, tables: list[str] | None = None, **named: Any) -> Role:
    named = {"principals": frozenset({"ann"}), **named}
    return Role(7, frozenset(rights), tables or ["t"], **named)


def may(policy: Policy, identity: Identity, right: Right, table: str | None = "t", channel: str | None = None) -> bool:
    return isinstance(policy.decide(identity, right, table, channel), Allowed)


def rights_of(policy: Policy, identity: Identity, table: str | None = "t") -> set[Right]:
    return {right for right in Right if may(policy, identity, right, table)}


@pytest.mark.parametrize("right", Right)
def test_a_right_includes_to_read_and_admin_includes_all(right: Right) -> None:
    wanted = set(Right) if right is Right.ADMIN else {right, Right.READ}
    assert rights_of(Policy([role(right)]), ANN) == wanted


def test_without_a_role_nothing_is_allowed() -> None:
    assert rights_of(Policy(), ANN) == set()
    assert rights_of(Policy([role(Right.ADMIN, principals=frozenset({"bob"}))]), ANN) == set()
    assert rights_of(Policy([role(Right.ADMIN, tables=["other"])]), ANN) == set()
    assert rights_of(Policy([role(Right.ADMIN)]), Identity("an")) == set()


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("raw_*", ["raw_", "raw_a", "raw_a.b"], ["raw", "a_raw_b", "RAW_a"]),
        ("*", ["a", "a.b-c_1", ""], []),
        ("a?c", ["abc", "a.c"], ["ac", "abbc"]),
        ("a.c", ["a.c"], ["abc", "a.c2", "xa.c"]),
        ("*_raw", ["a_raw"], ["a_raw\n", "a_raw_"]),
    ],
)
def test_a_pattern_fits_a_whole_name(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    policy = Policy([role(Right.WRITE, tables=["nothing", pattern])])
    for table in fits:
        assert may(policy, ANN, Right.WRITE, table), table
    for table in fits_not:
        assert not may(policy, ANN, Right.WRITE, table), table


def test_the_decision_names_the_first_role_that_allows_it() -> None:
    first, second = role(Right.READ), role(Right.WRITE)
    assert Policy([first, second]).decide(ANN, Right.WRITE, "t") == Allowed(second)
    assert Policy([first, second]).decide(ANN, Right.READ, "t") == Allowed(first)


def test_groups_come_from_the_authenticator_and_from_the_file() -> None:
    policy = Policy(
        [role(Right.WRITE, principals=frozenset(), groups=frozenset({"ingest"}))], {"bob": frozenset({"ingest", "x"})}
    )
    assert may(policy, Identity("ann", groups=frozenset({"ingest"})), Right.WRITE)
    assert may(policy, Identity("bob"), Right.WRITE)
    assert not may(policy, Identity("ann", groups=frozenset({"x"})), Right.WRITE)
    assert not may(policy, Identity("ingest"), Right.WRITE), "a principal named as the group"


def test_rows_come_only_through_channels_of_the_prefix() -> None:
    policy = Policy([role(Right.WRITE, channels=["ann-", "shared/"])])
    assert may(policy, ANN, Right.WRITE, channel="ann-1")
    assert may(policy, ANN, Right.WRITE, channel="shared/1")
    denied = policy.decide(ANN, Right.WRITE, "t", "bob-1")
    assert isinstance(denied, Denied)
    assert "'bob-1'" in denied.message
    assert "'ann-' or 'shared/'" in denied.fix


def test_a_second_role_adds_its_channels() -> None:
    policy = Policy([role(Right.WRITE, channels=["a-"]), role(Right.WRITE, channels=["b-"]), role(Right.READ)])
    assert may(policy, ANN, Right.WRITE, channel="b-1")
    assert not may(policy, ANN, Right.WRITE, channel="c-1")
    anywhere = Policy([role(Right.WRITE, channels=["a-"]), role(Right.WRITE)])
    assert may(anywhere, ANN, Right.WRITE, channel="c-1")


def test_a_prefix_of_one_table_opens_no_channel_of_another() -> None:
    policy = Policy([role(Right.WRITE, channels=["a-"]), role(Right.WRITE, tables=["other"])])
    assert not may(policy, ANN, Right.WRITE, "t", "b")
    assert may(policy, ANN, Right.WRITE, "other", "b")


def test_each_member_of_a_group_has_channels_of_its_own() -> None:
    policy = Policy([role(Right.WRITE, principals=frozenset(), groups=frozenset({"g"}), channels=["{principal}/"])])
    ann, annabel, slash = (Identity(name, groups=frozenset({"g"})) for name in ("ann", "annabel", "ann/x"))
    assert may(policy, ann, Right.WRITE, channel="ann/1")
    assert not may(policy, ann, Right.WRITE, channel="annabel/1")
    assert may(policy, annabel, Right.WRITE, channel="annabel/1")
    assert not may(policy, slash, Right.WRITE, channel="ann/x/1"), "these are ann's, too"


def test_the_right_on_any_table_is_enough_where_none_is_named() -> None:
    policy = Policy([role(Right.WRITE)])
    assert rights_of(policy, ANN, None) == {Right.READ, Right.WRITE}
    assert rights_of(Policy(), ANN, None) == set()


def test_a_service_reads_everything_and_no_more() -> None:
    everything = Policy([role(Right.ADMIN, tables=["*"], principals=frozenset({"ann", "cluster", "anonymous"}))])
    assert rights_of(Policy(), CLUSTER) == {Right.READ}
    assert rights_of(everything, CLUSTER) == {Right.READ}, "roles are for clients"


def test_who_is_unknown_may_do_nothing() -> None:
    everything = Policy([role(Right.ADMIN, tables=["*"], principals=frozenset({"anonymous"}))])
    assert rights_of(everything, ANONYMOUS) == set()


def test_a_refusal_names_the_right_the_table_and_the_principal() -> None:
    denied = Policy().decide(ANN, Right.CREATE, "t" * 1000)
    assert isinstance(denied, Denied)
    assert denied.message == f"'ann' lacks the right `create` on the table '{'t' * 128}…'"
    assert "`create`" in denied.fix
    nowhere = Policy().decide(ANN, Right.READ, None)
    assert isinstance(nowhere, Denied)
    assert "any table" in nowhere.message


def test_a_credential_ends_at_its_time() -> None:
    assert not Identity("ann").is_expired(1 << 60)
    assert not Identity("ann", expires_ms=1000).is_expired(999)
    assert Identity("ann", expires_ms=1000).is_expired(1000)
