"""Decides about every call of a process: which identity it has, and whether that may do what it asks; and again while it runs."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeAlias, assert_never

import structlog

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.access.client_certificates import CREDENTIAL, ClientCertificates
from headgate_runtime.access.client_certificates import EXPIRED as CERTIFICATE_EXPIRED
from headgate_runtime.access.file import AccessFile, read_access_file
from headgate_runtime.access.identity import ANONYMOUS, Authenticator, CallerKind, Credentials, Identity, Unauthenticated
from headgate_runtime.access.issuer_keys import IssuerKeys
from headgate_runtime.access.quotas import UNLIMITED, Usage, usage_of
from headgate_runtime.access.rights import Denied, Right
from headgate_runtime.access.signed_tokens import Claims, SignedTokens
from headgate_runtime.access.tokens import ClusterToken, FileTokens
from headgate_runtime.errors import wire_error
from headgate_runtime.lifecycle import StartError
from headgate_runtime.peers import is_service
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock

_MAX_FILE_BYTES = 16 << 20

_UNKNOWN = Unauthenticated("no token, or one that is not known", "Pass the token that the operators gave you.")
_REVOKED = Unauthenticated("the token was revoked", "Use a newer token, or ask the operators for one.")
_EXPIRED = Unauthenticated("the token has expired", "Use a newer token, or ask the operators for one.")
_NO_SERVICE = "only services of the cluster may call this"
_STRANGER = Unauthenticated(_NO_SERVICE, "Set the same cluster_token for all services.")
_CLIENT = Denied(_NO_SERVICE, "Set the same cluster_token for all services; a client's token does not do.")

_log = structlog.get_logger()

Refusal: TypeAlias = Unauthenticated | Denied


@dataclass(slots=True, eq=False)
class _Running:
    """A call that runs for long and ends when its right does."""

    identity: Identity
    right: Right
    table: str
    channel: str
    end: Callable[[errors_pb2.Error], None] = field(repr=False)
    allowed_by: AccessFile | None = None
    """Under which the identity had the right at the last look."""


class AccessControl:
    """With the setting `access` clients need credentials and roles; with `cluster_token` services need that. Without, everybody
    may call what is for clients, or for services.

    Raises StartError if the access file cannot be read or is wrong.
    """

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._clock = clock
        self._interval_s = settings.access_reload
        self._path = Path(settings.access) if settings.access else None
        cluster_token = settings.cluster_token.get_secret_value()
        self._clients_guarded = self._path is not None
        self._services_guarded = bool(cluster_token)
        self._text = b""
        self._file = AccessFile()
        self._tokens = FileTokens(())
        self._authenticators: list[Authenticator] = [self._tokens]
        if cluster_token:
            self._authenticators.insert(0, ClusterToken(cluster_token))
        self._keys: IssuerKeys | None = None
        if settings.jwt_issuer:
            self._keys = IssuerKeys(settings.jwt_issuer, settings.jwt_keys, settings.jwt_refresh, clock)
            self._authenticators.append(SignedTokens(_claims(settings), self._keys))
        if settings.client_ca:
            self._authenticators.append(ClientCertificates(partial(is_service, domain=settings.cluster_domain)))
        self._running: set[_Running] = set()
        self._problem = ""
        if self._path is not None:
            try:
                self._take(_loaded(self._path, b""))
            except OSError as error:
                raise StartError.of_file("access", self._path, error) from error
            except ValueError as error:
                raise StartError(f"access: the file is wrong: {self._path}: {error}") from error

    @property
    def alarms(self) -> Sequence[str]:
        """What is wrong with the access file and the issuer's keys now, one sentence each."""
        return [each for each in (self.file_problem, self.keys_problem) if each]

    @property
    def file_problem(self) -> str:
        """What is wrong with the access file now, while what it said before holds; empty: nothing."""
        return self._problem

    @property
    def keys_problem(self) -> str:
        """Why the issuer's keys could not be fetched last; empty: they could."""
        return self._keys.problem if self._keys else ""

    # --- decisions ---

    def authenticate(self, credentials: Credentials, right: Right | None) -> Identity | Unauthenticated:
        """For a method that wants ``right``, None: that of a service. Needs no request. Where no credentials are needed and none
        are known: ANONYMOUS.
        """
        now_ms = self._clock.now_ms()
        for authenticator in self._authenticators:
            found = authenticator.identify(credentials, now_ms)
            if isinstance(found, Identity) and found.is_expired(now_ms):
                return _EXPIRED
            if found is not None:
                return found
        if right is None:
            return _STRANGER if self._services_guarded else ANONYMOUS
        return _UNKNOWN if self._clients_guarded else ANONYMOUS

    def decide(self, identity: Identity, right: Right | None, table: str | None, channel: str | None = None) -> Denied | None:
        """None: allowed. ``table`` None: is there any table on which it has the right?"""
        if right is None:
            return _CLIENT if self._services_guarded and identity.kind is not CallerKind.SERVICE else None
        if not self._clients_guarded:
            return None
        decision = self._file.policy.decide(identity, right, table, channel)
        return decision if isinstance(decision, Denied) else None

    def usage_of(self, identity: Identity) -> Usage:
        """Its quotas, of which the smallest count, or their defaults; none without an access file."""
        if not self._clients_guarded:
            return UNLIMITED
        return usage_of(self._file.quotas, identity.principal, self._file.policy.groups_of(identity))

    # --- calls that run for long ---

    @contextlib.contextmanager
    def ended_without_right(
        self, identity: Identity, right: Right, table: str, channel: str, end: Callable[[errors_pb2.Error], None]
    ) -> Iterator[None]:
        """Inside the block, ``end`` is called with the refusal within `access_reload` after the identity has expired, was revoked
        or has lost the right. Once; the block goes on.
        """
        running = _Running(identity, right, table, channel, end)
        self._running.add(running)
        try:
            yield
        finally:
            self._running.discard(running)

    def _recheck(self) -> None:
        for running in [*self._running]:
            if (refusal := self._refusal_now(running)) is not None:
                self._running.discard(running)
                running.end(refusal_error(refusal))

    def _refusal_now(self, running: _Running) -> Refusal | None:
        identity: Identity | None = running.identity
        for authenticator in self._authenticators:
            if identity is not None:
                identity = authenticator.renew(identity)
        if identity is None:
            return _REVOKED
        if identity.is_expired(self._clock.now_ms()):
            return CERTIFICATE_EXPIRED if identity.credential.startswith(CREDENTIAL) else _EXPIRED
        if identity is running.identity and running.allowed_by is self._file:
            return None
        running.identity, running.allowed_by = identity, self._file
        return self.decide(identity, running.right, running.table, running.channel)

    # --- the file ---

    async def begin(self) -> None:
        """Fetches the issuer's keys, so that the first calls find them; returns within seconds, also without them."""
        if self._keys is not None:
            await self._keys.fetch()

    async def run(self) -> NoReturn:
        """Reads the file again whenever it has changed, fetches the issuer's keys, and ends calls whose right has ended, until it
        is cancelled.
        """
        async with asyncio.TaskGroup() as tasks:
            if self._keys is not None:
                tasks.create_task(self._keys.run())
            await self._watch()
        raise AssertionError("watching ended")

    async def _watch(self) -> NoReturn:
        while True:
            await self._clock.sleep(self._interval_s)
            if self._path is not None:
                await self._reload(self._path)
            self._recheck()

    async def _reload(self, path: Path) -> None:
        try:
            found = await asyncio.to_thread(_loaded, path, self._text)
            if found is not None:
                found[1].check_follows(self._file)
        except (OSError, ValueError) as error:
            problem = f"the access file is wrong, and what it said before holds: {path}: {error}"
            if problem != self._problem:
                _log.error("the access file is wrong, and what it said before holds", path=str(path), error=str(error))
            self._problem = problem
            return
        self._problem = ""
        if found is not None:
            self._take(found)
            _log.info("the access file was read again", path=str(path), tokens=len(self._file.tokens))

    def _take(self, found: tuple[bytes, AccessFile] | None) -> None:
        if found is not None:
            self._text, self._file = found
            self._tokens.replace(self._file.tokens)


def _claims(settings: ServiceSettings) -> Claims:
    names = (settings.jwt_principal, settings.jwt_groups, settings.jwt_prefix)
    return Claims(settings.jwt_issuer, settings.jwt_audience, *names)


def refusal_error(refusal: Refusal) -> errors_pb2.Error:
    """As the caller gets it."""
    match refusal:
        case Unauthenticated(message, fix):
            return wire_error(errors_pb2.CODE_UNAUTHENTICATED, message, fix)
        case Denied(message, fix):
            return wire_error(errors_pb2.CODE_PERMISSION_DENIED, message, fix)
        case _:
            assert_never(refusal)


def _loaded(path: Path, known: bytes) -> tuple[bytes, AccessFile] | None:
    """The file's bytes and what they say; None if they are ``known``. Raises OSError or ValueError."""
    with path.open("rb") as file:
        text = file.read(_MAX_FILE_BYTES + 1)
    if len(text) > _MAX_FILE_BYTES:
        raise ValueError(f"has more than {_MAX_FILE_BYTES} bytes")
    return None if text == known else (text, read_access_file(text.decode()))
