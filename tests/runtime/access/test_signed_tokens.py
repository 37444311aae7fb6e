"""Signed tokens: who they name, and every way in which one is wrong."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from functools import cache

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from headgate_runtime.access.identity import Credentials, Identified, Identity, Unauthenticated
from headgate_runtime.access.issuer_keys import IssuerKeys
from headgate_runtime.access.signed_tokens import LEEWAY_MS, LONGEST, Claims, SignedTokens
from headgate_runtime.world import SystemClock
from support.issuer import Issuer, PrivateKey, issuer

NOW_MS = 1_800_000_000_000
NOW_S = NOW_MS // 1000


@cache
def keys() -> dict[str, PrivateKey]:
    return {
        "r": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "e": ec.generate_private_key(ec.SECP256R1()),
        "d": ed25519.Ed25519PrivateKey.generate(),
    }


class Case:
    """An issuer and what checks its tokens."""

    def __init__(self, issuer: Issuer, found: IssuerKeys) -> None:
        self.issuer = issuer
        self.keys = found
        self.tokens = SignedTokens(Claims(issuer.address, "headgate"), found)

    def claims(self, **others: object) -> dict[str, object]:
        return {"iss": self.issuer.address, "aud": "headgate", "sub": "loader", "exp": NOW_S + 60, **others}

    def sign(self, **others: object) -> str:
        return self.issuer.sign("e", {name: value for name, value in self.claims(**others).items() if value is not None})

    def identify(self, token: str, now_ms: int = NOW_MS) -> Identified:
        return self.tokens.identify(Credentials(f"Bearer {token}"), now_ms)

    def refused(self, token: str, now_ms: int = NOW_MS) -> str:
        found = self.identify(token, now_ms)
        assert isinstance(found, Unauthenticated)
        return found.message


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with issuer() as made:
        made.keys = dict(keys())
        found = IssuerKeys(made.address, "", 300, SystemClock())
        await found.fetch()
        assert not found.problem
        yield Case(made, found)


@pytest.mark.parametrize("kid", "red")
async def test_a_token_names_its_principal_and_groups_under_the_issuers_prefix(case: Case, kid: str) -> None:
    token = case.issuer.sign(kid, case.claims(groups=["ingest", "ops"], aud=["others", "headgate"]))
    found = case.identify(token)
    assert isinstance(found, Identity)
    assert (found.principal, found.groups) == ("jwt:loader", {"jwt:ingest", "jwt:ops"})
    assert found.expires_ms == (NOW_S + 60) * 1000 + LEEWAY_MS
    assert found.credential.startswith("jwt:")
    assert token not in repr(found)
    assert case.tokens.renew(found) == found


async def test_claims_of_other_names_may_lie_inside_objects(case: Case) -> None:
    case.tokens = SignedTokens(Claims(case.issuer.address, "headgate", "https://a.b/id", "realm.roles", ""), case.keys)
    found = case.identify(case.sign(**{"https://a.b/id": "x", "realm": {"roles": "one"}}))
    assert isinstance(found, Identity)
    assert (found.principal, found.groups) == ("x", {"one"})


async def test_other_tokens_are_left_to_other_authenticators(case: Case) -> None:
    assert case.identify("hg_0123") is None
    assert case.tokens.identify(Credentials(), NOW_MS) is None


async def test_times_count_with_a_small_leeway(case: Case) -> None:
    token = case.sign(nbf=NOW_S)
    assert isinstance(case.identify(token, NOW_MS - LEEWAY_MS), Identity)
    assert case.refused(token, NOW_MS - LEEWAY_MS - 1) == "the token is not valid yet"
    assert isinstance(case.identify(token, NOW_MS + 60_000 + LEEWAY_MS - 1), Identity)
    assert case.refused(token, NOW_MS + 60_000 + LEEWAY_MS) == "the token has expired"


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"aud": "others"}, "another audience"),
        ({"aud": None}, "lacks the claim aud"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": None}, "lacks the claim iss"),
        ({"exp": None}, "lacks the claim exp"),
        ({"exp": float("inf")}, "a time of the token is none"),
        ({"exp": True}, "a time of the token is none"),
        ({"exp": "never"}, "a time of the token is none"),
        ({"exp": 10**400}, "a time of the token is none"),
        ({"nbf": [1]}, "a time of the token is none"),
        ({"sub": None}, "no name of a principal"),
        ({"sub": ""}, "no name of a principal"),
        ({"sub": "a b"}, "no name of a principal"),
        ({"sub": "a" * 200}, "no name of a principal"),
    ],
)
async def test_a_token_with_a_wrong_claim_is_refused(case: Case, others: dict[str, object], message: str) -> None:
    assert message in case.refused(case.sign(**others))


async def test_no_token_proves_a_name_of_the_clusters_own_or_of_a_certificate(case: Case) -> None:
    case.tokens = SignedTokens(Claims(case.issuer.address, "headgate", prefix=""), case.keys)
    for name in ("cluster", "cert:loader.example.org"):
        assert "no name of a principal" in case.refused(case.sign(sub=name))


async def test_a_token_without_a_signature_is_refused(case: Case) -> None:
    assert "is not signed by one of" in case.refused(jwt.encode(case.claims(), "", algorithm="none", headers={"kid": "e"}))


async def test_a_public_key_is_no_shared_secret(case: Case) -> None:
    pem = keys()["r"].public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header, payload = part({"alg": "HS256", "kid": "r"}), part(case.claims())
    signed = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(f"{header}.{payload}".encode(), pem)
    assert "is not signed by one of" in case.refused(f"{header}.{payload}.{text(signed)}")


async def test_a_key_verifies_only_by_its_own_algorithm(case: Case) -> None:
    _header, payload, signature = case.sign().split(".")
    assert "no signed token" in case.refused(f"{part({'alg': 'RS256', 'kid': 'e'})}.{payload}.{signature}")


async def test_a_changed_or_foreign_signature_is_refused(case: Case) -> None:
    header, _, signature = case.sign().split(".")
    assert case.refused(f"{header}.{part(case.claims(sub='root'))}.{signature}") == "the token's signature is wrong"
    stranger = ec.generate_private_key(ec.SECP256R1())
    assert case.refused(case.issuer.sign("e", case.claims(), stranger)) == "the token's signature is wrong"


async def test_a_key_that_the_token_brings_itself_counts_for_nothing(case: Case) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    brought = {"kid": "mine", "jwk": {"kty": "EC"}, "jku": case.issuer.address}
    token = jwt.encode(case.claims(), stranger, algorithm="ES256", headers=brought)
    assert "a key that is not known" in case.refused(token)


@pytest.mark.parametrize(
    "token",
    ["..", "a.b.c", "é.é.é", "eyJ.eyJ.x", ".".join(["!" * 100] * 3), "bnVsbA.bnVsbA.bnVsbA"],
)
async def test_garbage_is_no_signed_token(case: Case, token: str) -> None:
    assert "no signed token" in case.refused(token)


async def test_deep_nesting_ends_nothing(case: Case) -> None:
    deep = text(b"[" * 11_000)
    assert "no signed token" in case.refused(f"{deep}..")
    assert "no signed token" in case.refused(f"{part({'alg': 'ES256', 'kid': 'e'})}.{deep}.x")


async def test_a_huge_token_is_refused_before_it_is_read(case: Case) -> None:
    assert f"more than {LONGEST:,} characters" in case.refused(case.sign(groups=["g" * 100] * 200))


async def test_a_rotated_key_counts_from_the_next_fetch_on_and_the_old_one_no_more(case: Case) -> None:
    old = case.sign()
    case.issuer.keys = {"new": ec.generate_private_key(ec.SECP256R1())}
    new = case.issuer.sign("new", case.claims())
    assert "a key that is not known" in case.refused(new)
    await case.keys.fetch()
    assert isinstance(case.identify(new), Identity)
    assert "a key that is not known" in case.refused(old)


async def test_asking_never_waits_for_the_issuer(case: Case) -> None:
    before = len(case.issuer.requests)
    token = case.issuer.sign("unknown", case.claims(), keys()["e"])
    for _ in range(100):
        case.refused(token)
    await asyncio.sleep(0)
    assert len(case.issuer.requests) == before


def part(value: object) -> str:
    return text(json.dumps(value).encode())


def text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
