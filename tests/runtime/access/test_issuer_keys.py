"""The issuer's keys: when they are fetched, from where, and what holds when that fails."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from headgate_runtime.access import https
from headgate_runtime.access.https import MOST_BYTES
from headgate_runtime.access.issuer_keys import RETRY_S, IssuerKeys
from headgate_runtime.values import is_safe_url
from headgate_runtime.world import SystemClock
from support.issuer import Handler, Issuer, answer, answer_json, issuer, public
from support.sleeps import Sleeps

SHORT_S = 0.2


@pytest.fixture
async def shown() -> AsyncIterator[Issuer]:
    async with issuer() as made:
        made.keys = {"k": ec.generate_private_key(ec.SECP256R1())}
        yield made


def keys_of(shown: Issuer, address: str = "") -> IssuerKeys:
    return IssuerKeys(shown.address, address, 300, SystemClock())


async def test_keys_come_from_where_the_discovery_document_says(shown: Issuer) -> None:
    keys = keys_of(shown)
    await keys.fetch()
    assert keys.find("k") is not None
    assert shown.requests == ["/.well-known/openid-configuration", "/keys"]


async def test_a_named_key_set_needs_no_discovery(shown: Issuer) -> None:
    keys = keys_of(shown, f"{shown.address}/set?v=1")
    await keys.fetch()
    assert keys.find("k") is not None
    assert shown.requests == ["/set?v=1"]


@pytest.mark.parametrize(
    "document",
    [{"issuer": "https://other.example", "jwks_uri": "https://other.example"}, {"jwks_uri": "https://other.example"}],
)
async def test_the_discovery_document_of_another_issuer_is_not_followed(shown: Issuer, document: dict[str, str]) -> None:
    shown.answer = lambda request: answer_json(request, document)
    keys = keys_of(shown)
    await keys.fetch()
    assert "another issuer's" in keys.problem


async def test_discovery_leads_to_no_plain_address_elsewhere(shown: Issuer) -> None:
    shown.answer = lambda request: answer_json(request, {"issuer": shown.address, "jwks_uri": "http://192.0.2.1/keys"})
    keys = keys_of(shown)
    await keys.fetch()
    assert "no https:// address" in keys.problem


@pytest.mark.parametrize(
    "address", ["https://issuer example/keys", "https://issuer.example/ keys", f"https://{70 * 'a'}.example/"]
)
async def test_an_address_that_nobody_can_have_leaves_the_keys_as_they_were(shown: Issuer, address: str) -> None:
    keys = keys_of(shown)
    await keys.fetch()
    shown.answer = lambda request: answer_json(request, {"issuer": shown.address, "jwks_uri": address})
    await keys.fetch()
    assert address in keys.problem
    assert keys.find("k") is not None


def drip(request: BaseHTTPRequestHandler) -> None:
    """A byte at a time, for as long as somebody listens."""
    request.send_response(200)
    request.end_headers()
    with contextlib.suppress(OSError):
        while True:
            request.wfile.write(b" ")


def silent(request: BaseHTTPRequestHandler) -> None:
    """Says nothing until the other side is gone."""
    request.rfile.read()


@pytest.mark.parametrize(
    ("answer_of", "problem"),
    [
        (lambda request: answer(request, 503, b""), "status is 503"),
        (lambda request: answer(request, 302, b"", {"Location": "file:///etc/passwd"}), "status is 302"),
        (lambda request: answer(request, 200, b"no"), "answers no JSON"),
        (lambda request: answer(request, 200, b"[" * 100_000), "answers no JSON"),
        (lambda request: answer(request, 200, b"[1]"), "no JSON object"),
        (lambda request: answer(request, 200, b"{}"), "no key set"),
        (lambda request: answer(request, 200, b'{"keys": [null, {}, {"kid": "k", "kty": "RSA"}]}'), "has no key"),
        (lambda request: answer(request, 200, b'{"keys": [' + b"{}," * 99 + b"{}]}"), "has 100 keys"),
        (lambda request: answer(request, 200, b" " * (MOST_BYTES + 1)), "more than 1,048,576 bytes"),
    ],
)
async def test_a_bad_answer_leaves_the_keys_as_they_were(shown: Issuer, answer_of: Handler, problem: str) -> None:
    keys = keys_of(shown, f"{shown.address}/keys")
    await keys.fetch()
    shown.answer = answer_of
    await keys.fetch()
    assert problem in keys.problem
    assert keys.find("k") is not None
    shown.answer = None
    await keys.fetch()
    assert not keys.problem


@pytest.mark.parametrize("slow", [silent, drip])
async def test_an_issuer_that_never_ends_its_answer_is_left_in_time(
    shown: Issuer, slow: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https, "SECONDS", SHORT_S)
    shown.answer = slow
    keys = keys_of(shown)
    await keys.fetch()
    assert keys.problem


async def test_keys_for_other_uses_and_weaker_ones_verify_nothing(shown: Issuer) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    entries = [
        {**public(key, "encrypts"), "use": "enc"},
        {**public(key, "sha512"), "alg": "RS512"},
        {"kid": "secret", "kty": "oct", "k": "c2VjcmV0"},
        public(ec.generate_private_key(ec.SECP384R1()), "p384"),
        public(key, "good"),
    ]
    shown.answer = lambda request: answer_json(request, {"keys": entries})
    keys = keys_of(shown, f"{shown.address}/keys")
    await keys.fetch()
    assert [keys.find(str(entry["kid"])) is not None for entry in entries] == [False, False, False, False, True]


async def test_keys_are_fetched_at_intervals_and_soon_after_an_unknown_one_but_not_more_often(shown: Issuer) -> None:
    clock = Sleeps()
    keys = IssuerKeys(shown.address, f"{shown.address}/keys", 300, clock)
    await keys.fetch()
    shown.asked.clear()
    running = asyncio.create_task(keys.run())
    await clock.end_sleep(RETRY_S)
    await clock.end_sleep(300 - RETRY_S)
    await shown.asked.wait()
    for _ in range(100):
        keys.find("unknown")
    await clock.end_sleep(RETRY_S)
    await clock.asleep.get()  # that of the interval, which the unknown key cuts short
    seconds, over = await clock.asleep.get()
    assert (seconds, len(shown.requests)) == (RETRY_S, 3)
    shown.answer = lambda request: answer(request, 503, b"")
    over.set()
    await clock.asleep.get()
    keys.find("unknown")
    await clock.end_sleep(RETRY_S)
    await clock.end_sleep(RETRY_S)  # a fetch failed: again after the shortest time, without the interval
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("https://issuer.example/realm", True),
        ("http://localhost:8080/x", True),
        ("http://[::1]:8080/x", True),
        ("http://issuer.example", False),
        ("http://localhost.issuer.example", False),
        ("https://user:password@issuer.example", False),
        ("https://a:b:c/", False),
        ("https://", False),
        ("file:///etc/passwd", False),
        ("https://a\r\nHost: b", False),
    ],
)
def test_only_what_comes_by_tls_or_from_this_machine_is_safe(address: str, safe: bool) -> None:
    assert is_safe_url(address) == safe
