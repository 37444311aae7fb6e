"""Bearer tokens: which identity they prove, until when, and that they can be taken back."""

import hashlib

from headgate_runtime.access.file import TokenEntry
from headgate_runtime.access.identity import CLUSTER, Credentials, Identity, Unauthenticated
from headgate_runtime.access.tokens import ClusterToken, FileTokens, digest_of, new_token
from headgate_runtime.world import SystemIds


def bearer(token: str) -> Credentials:
    return Credentials(f"Bearer {token}")


def entry(token: str, principal: str = "ann", expires_ms: int | None = None) -> TokenEntry:
    return TokenEntry(digest_of(token), principal, expires_ms, 1)


def proved(tokens: FileTokens, token: str, now_ms: int = 0) -> Identity:
    found = tokens.identify(bearer(token), now_ms)
    assert isinstance(found, Identity)
    return found


def test_the_digest_is_what_sha256sum_prints() -> None:
    assert digest_of("abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()


def test_a_token_is_long_random_and_easy_to_find() -> None:
    made = {new_token(SystemIds()) for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith("hg_") and len(token) == 67 and token.isascii() for token in made)


def test_a_principal_may_have_several_tokens() -> None:
    tokens = FileTokens([entry("old"), entry("new"), entry("other", "bob")])
    assert proved(tokens, "old").principal == proved(tokens, "new").principal == "ann"
    assert proved(tokens, "other").principal == "bob"
    assert proved(tokens, "old").credential != proved(tokens, "new").credential


def test_what_is_not_known_is_left_to_other_authenticators() -> None:
    tokens = FileTokens([entry("right")])
    for authorization in ("", "Bearer", "Bearer ", "Bearer righ", "Bearer right2", "Bearer RIGHT", "Basic right", "right"):
        assert tokens.identify(Credentials(authorization), 0) is None, authorization
    assert isinstance(tokens.identify(Credentials("bearer  right "), 0), Identity)


def test_a_token_ends_at_its_time() -> None:
    tokens = FileTokens([entry("t", expires_ms=1000)])
    assert proved(tokens, "t", 999).expires_ms == 1000
    assert isinstance(tokens.identify(bearer("t"), 1000), Unauthenticated)


def test_the_credentials_name_is_no_secret_and_shows_in_no_repr() -> None:
    tokens = FileTokens([entry("hunter2")])
    assert proved(tokens, "hunter2").credential == digest_of("hunter2")[:19]
    assert "hunter2" not in repr(bearer("hunter2"))


def test_a_token_that_is_not_in_the_newer_file_is_revoked() -> None:
    tokens = FileTokens([entry("old"), entry("new")])
    old, new = proved(tokens, "old"), proved(tokens, "new")
    tokens.replace([entry("new"), entry("third")])
    assert tokens.identify(bearer("old"), 0) is None
    assert tokens.renew(old) is None
    assert tokens.renew(new) == new


def test_a_token_that_goes_to_another_principal_is_revoked_for_the_first() -> None:
    tokens = FileTokens([entry("t", "ann")])
    ann = proved(tokens, "t")
    tokens.replace([entry("t", "bob")])
    assert tokens.renew(ann) is None


def test_an_end_that_was_moved_counts_for_identities_that_were_proved_before() -> None:
    tokens = FileTokens([entry("t", expires_ms=1000)])
    ann = proved(tokens, "t")
    tokens.replace([entry("t", expires_ms=500)])
    sooner = tokens.renew(ann)
    assert sooner is not None
    assert sooner.is_expired(500)
    tokens.replace([entry("t")])
    for_good = tokens.renew(ann)
    assert for_good is not None
    assert not for_good.is_expired(1 << 60)


def test_identities_of_other_authenticators_are_left_as_they_are() -> None:
    other = Identity("ann", credential="jwt 17")
    assert FileTokens([]).renew(other) is other
    assert ClusterToken("c").renew(other) is other


def test_the_clusters_token_proves_a_service() -> None:
    cluster = ClusterToken("c")
    assert cluster.identify(bearer("c"), 0) == CLUSTER
    for wrong in ("", "C", "cc"):
        assert cluster.identify(bearer(wrong), 0) is None
    assert cluster.identify(Credentials(), 0) is None
