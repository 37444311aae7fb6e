"""Bearer tokens: those of clients, by their digests in the access file, and the one that all services of a cluster share."""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from headgate_runtime.access.file import DIGEST, TokenEntry
from headgate_runtime.access.identity import CLUSTER, Credentials, Identified, Identity, Unauthenticated
from headgate_runtime.world import Ids

_PREFIX: Final = "hg_"
"""Begins each token, so that a scanner of repositories knows one."""


def new_token(ids: Ids) -> str:
    """256 random bits: nobody tries all of them, so one pass of SHA-256 without a salt keeps the token secret."""
    return f"{_PREFIX}{ids.token()}{ids.token()}"


def digest_of(token: str) -> str:
    """As the access file has it. Looked up instead of the token itself, so that the time of a look-up says nothing about how much
    of a guess is right.
    """
    return DIGEST + hashlib.sha256(token.encode()).hexdigest()


class FileTokens:
    """Tokens of the access file. ``replace`` puts those of a newer file in their place."""

    def __init__(self, entries: Sequence[TokenEntry]) -> None:
        self.replace(entries)

    def replace(self, entries: Sequence[TokenEntry]) -> None:
        """Tokens that are not among them are revoked."""
        self._by_digest = {entry.digest: _identity(entry) for entry in entries}
        self._by_credential = {identity.credential: identity for identity in self._by_digest.values()}

    def identify(self, credentials: Credentials, now_ms: int) -> Identified:
        identity = self._by_digest.get(digest_of(credentials.bearer))
        if identity is not None and identity.is_expired(now_ms):
            return Unauthenticated("the token has expired", "Use a newer token, or ask the operators for one.")
        return identity

    def renew(self, identity: Identity) -> Identity | None:
        if not identity.credential.startswith(DIGEST):
            return identity
        now = self._by_credential.get(identity.credential)
        return now if now is not None and now.principal == identity.principal else None


class ClusterToken:
    """The token that every service of the cluster has. A new one needs a restart."""

    def __init__(self, token: str) -> None:
        self._digest = digest_of(token)

    def identify(self, credentials: Credentials, now_ms: int) -> Identified:  # noqa: ARG002 - it never expires
        return CLUSTER if hmac.compare_digest(digest_of(credentials.bearer), self._digest) else None

    def renew(self, identity: Identity) -> Identity | None:
        return identity


def _identity(entry: TokenEntry) -> Identity:
    return Identity(entry.principal, expires_ms=entry.expires_ms, credential=entry.credential)
