"""The public keys by which an issuer signs tokens: fetched in the background, kept while the issuer does not answer."""

import asyncio
import json
from collections.abc import Mapping
from typing import Final, NoReturn

import jwt
import structlog

from headgate_runtime.access.https import FetchError, fetch
from headgate_runtime.values import is_safe_url
from headgate_runtime.world import Clock

ALGORITHMS: Final = frozenset({"RS256", "ES256", "EdDSA"})
"""Signatures by a key pair. None of a shared secret: everybody knows a public key, and could sign with it."""

RETRY_S: Final = 10.0
"""The shortest time between two fetches, whatever strangers' tokens name, and the pause after one that failed."""

_MOST_KEYS: Final = 64
_DISCOVERY: Final = "/.well-known/openid-configuration"

_log = structlog.get_logger()


class IssuerKeys:
    """``address``: of the key set (JWKS); empty: the issuer's discovery document says where it lies.

    ``refresh_s``: how often they are fetched. A key that is gone from the set verifies nothing from the next fetch on.
    """

    def __init__(self, issuer: str, address: str, refresh_s: float, clock: Clock) -> None:
        self._issuer = issuer
        self._address = address
        self._refresh_s = refresh_s
        self._clock = clock
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._missed = asyncio.Event()
        self.problem = ""
        """Why the last fetch failed; empty if it did not."""

    def find(self, kid: str) -> jwt.PyJWK | None:
        """At once. None: a key of this id is not known here; the set is soon fetched again."""
        key = self._keys.get(kid)
        if key is None:
            self._missed.set()
        return key

    async def fetch(self) -> None:
        """Once. If it fails, the keys are those of before, and ``problem`` says why."""
        try:
            self._keys = _read_keys(await self._document(self._address or await self._discovered()))
        except FetchError as error:
            problem = f"the keys of {self._issuer} could not be fetched, and those from before hold: {error}"
            if problem != self.problem:
                _log.error("the issuer's keys could not be fetched", issuer=self._issuer, error=str(error), keys=len(self._keys))
            self.problem = problem
        else:
            if self.problem:
                _log.info("the issuer's keys were fetched again", issuer=self._issuer, keys=len(self._keys))
            self.problem = ""

    async def run(self) -> NoReturn:
        """Fetches at intervals, and soon after an unknown key was asked for, until it is cancelled."""
        while True:
            await self._clock.sleep(RETRY_S)
            if not self.problem:
                await self._due(self._refresh_s - RETRY_S)
            await self.fetch()

    async def _due(self, seconds: float) -> None:
        """Returns after that time, or when an unknown key is asked for."""
        waits = [asyncio.ensure_future(each) for each in (self._clock.sleep(max(0.0, seconds)), self._missed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        self._missed.clear()

    async def _discovered(self) -> str:
        """Raises FetchError. OpenID Connect Discovery 1.0, 4.3: the document's issuer has to be the one that was asked."""
        found = await self._document(self._issuer.rstrip("/") + _DISCOVERY)
        address = found.get("jwks_uri")
        if found.get("issuer") != self._issuer:
            raise FetchError("its discovery document is another issuer's")
        if not isinstance(address, str) or not is_safe_url(address):
            raise FetchError("its discovery document names no https:// address of keys")
        return address

    async def _document(self, address: str) -> Mapping[str, object]:
        try:
            found = json.loads(await fetch(address, self._clock))
        except (ValueError, RecursionError):
            raise FetchError(f"{address} answers no JSON") from None
        if not isinstance(found, dict):
            raise FetchError(f"{address} answers no JSON object")
        return found


def _read_keys(found: Mapping[str, object]) -> Mapping[str, jwt.PyJWK]:
    """By their ids. Others' kinds of keys may lie beside those for signatures, and are passed over. Raises FetchError."""
    listed = found.get("keys")
    if not isinstance(listed, list):
        raise FetchError("what it answers is no key set")
    if len(listed) > _MOST_KEYS:
        raise FetchError(f"the key set has {len(listed)} keys, and the limit is {_MOST_KEYS}")
    entries = [each for each in listed if isinstance(each, dict) and isinstance(each.get("kid"), str)]
    keys = {entry["kid"]: key for entry in entries if (key := _key(entry)) is not None}
    if not keys:
        raise FetchError(f"the key set has no key with an id for {', '.join(sorted(ALGORITHMS))}")
    return keys


def _key(entry: dict[str, object]) -> jwt.PyJWK | None:
    if entry.get("use", "sig") != "sig" or entry.get("kty") not in ("RSA", "EC", "OKP") or "d" in entry:
        return None
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if key.algorithm_name in ALGORITHMS else None
