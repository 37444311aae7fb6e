"""Who calls: from the bearer token of a call to a principal, and which services it may call."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate_proto.api.v1 import errors_pb2
from headgate_runtime.errors import rpc_error
from headgate_runtime.settings import ServiceSettings

ANONYMOUS: Final = "anonymous"
CLUSTER: Final = "cluster"
"""The principal of the services among themselves."""

_HEALTH: Final = "/grpc.health."
_CLUSTER_SERVICES: Final = "/headgate.cluster."


class Principals:
    """Default deny: with tokens every method but health wants a known one, and the cluster's own services want the cluster's.

    Raises OSError or ValueError if the token file cannot be read or is wrong.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        cluster_token = settings.cluster_token.get_secret_value()
        self._by_digest = {_digest(cluster_token): CLUSTER} if cluster_token else {}
        self._clients_need_token = bool(settings.tokens)
        if settings.tokens:
            for token, principal in _read(Path(settings.tokens)).items():
                self._by_digest.setdefault(_digest(token), principal)

    def of(self, method: str, authorization: str | None) -> str:
        """The caller of ``method`` ("/package.Service/Name"). Raises RpcError (CODE_UNAUTHENTICATED)."""
        if method.startswith(_HEALTH):
            return ANONYMOUS
        principal = self._known(authorization)
        if method.startswith(_CLUSTER_SERVICES):
            if principal != CLUSTER and CLUSTER in self._by_digest.values():
                raise rpc_error(
                    errors_pb2.CODE_UNAUTHENTICATED,
                    "only services of the cluster may call this",
                    "Set the same cluster_token for all.",
                )
        elif principal is None and self._clients_need_token:
            raise rpc_error(
                errors_pb2.CODE_UNAUTHENTICATED,
                "no token, or one that is not known",
                "Pass the token that the operators gave you.",
            )
        return principal or ANONYMOUS

    def _known(self, authorization: str | None) -> str | None:
        scheme, _, token = (authorization or "").partition(" ")
        return self._by_digest.get(_digest(token.strip())) if scheme.lower() == "bearer" else None


class ServicesOnly(Principals):
    """Where certificates have proved that a service calls."""

    def __init__(self) -> None:
        pass

    def of(self, method: str, authorization: str | None) -> str:  # noqa: ARG002 - TLS has asked already
        return CLUSTER


def _digest(token: str) -> bytes:
    """Looked up instead of the token itself, so that the time of a look-up says nothing about how much of a guess is right."""
    return hashlib.sha256(token.encode()).digest()


def _read(path: Path) -> Mapping[str, str]:
    """Token to principal. Lines are "PRINCIPAL TOKEN"; empty ones and such that begin with # are skipped."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] == CLUSTER or words[1] in found:
            raise ValueError(f"{path}, line {number}: want PRINCIPAL TOKEN, each token once, a principal other than {CLUSTER!r}")
        found[words[1]] = words[0]
    return found
