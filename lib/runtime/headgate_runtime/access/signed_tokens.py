"""Signed tokens of an issuer (JWT, RFC 7519, as OpenID Connect has them): who they name, if all about them is right."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import jwt

from headgate_runtime.access.file import is_principal
from headgate_runtime.access.identity import CERTIFIED, Credentials, Identified, Identity, Unauthenticated
from headgate_runtime.access.issuer_keys import ALGORITHMS, IssuerKeys

LEEWAY_MS: Final = 10_000
"""By which the issuer's clock may differ from ours. Longer: tokens live longer than they say."""

LONGEST: Final = 16 << 10
"""Characters of a token."""

_LAST_S: Final = 1 << 40
"""A time of a token, s since the epoch, is before it; 34,000 years."""
_NEWER: Final = "Get a newer token from the issuer."
_ANOTHER: Final = "Get a token from the issuer that the operators named, for the audience that they named."
_OPTIONS: Final[jwt.types.Options] = {
    "require": ["iss", "aud", "exp"],
    "enforce_minimum_key_length": True,
    # Times are checked here, by the clock that is passed in.
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


@dataclass(frozen=True, slots=True)
class Claims:
    """``principal``, ``groups``: the claims that have them; a dot leads into an object, as in "realm_access.roles".

    ``prefix``: stands before both here, so that nobody at the issuer takes the name of a principal of the access file.
    """

    issuer: str
    audience: str
    principal: str = "sub"
    groups: str = "groups"
    prefix: str = "jwt:"


class SignedTokens:
    """Identities that tokens of one issuer prove. They end with the token; there is no way to revoke one before."""

    def __init__(self, claims: Claims, keys: IssuerKeys) -> None:
        self._claims = claims
        self._keys = keys

    def identify(self, credentials: Credentials, now_ms: int) -> Identified:
        token = credentials.bearer
        if token.count(".") != 2:
            return None
        if len(token) > LONGEST:
            return Unauthenticated(f"the token has more than {LONGEST:,} characters", "Use one with fewer claims.")
        found = self._verified(token)
        return found if isinstance(found, Unauthenticated) else self._identity(token, found, now_ms)

    def renew(self, identity: Identity) -> Identity | None:
        return identity

    def _verified(self, token: str) -> Mapping[str, object] | Unauthenticated:
        """Its claims, once the signature, the issuer and the audience are right."""
        claims = self._claims
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                return Unauthenticated(f"the token is not signed by one of {', '.join(sorted(ALGORITHMS))}", _ANOTHER)
            key = self._keys.find(str(header.get("kid", "")))
            if key is None:
                return Unauthenticated("the token is signed by a key that is not known here", f"Wait some seconds. {_ANOTHER}")
            return jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=claims.audience,
                issuer=claims.issuer,
                options=_OPTIONS,
            )
        except jwt.InvalidAudienceError:
            return Unauthenticated("the token is for another audience", _ANOTHER)
        except jwt.InvalidIssuerError:
            return Unauthenticated("the token is of another issuer", _ANOTHER)
        except jwt.MissingRequiredClaimError as error:
            return Unauthenticated(f"the token lacks the claim {error.claim}", _ANOTHER)
        except jwt.InvalidSignatureError:
            return Unauthenticated("the token's signature is wrong", _ANOTHER)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return Unauthenticated("the token is no signed token", _ANOTHER)

    def _identity(self, token: str, found: Mapping[str, object], now_ms: int) -> Identity | Unauthenticated:
        ends_ms, begins_ms = _time_ms(found["exp"]), _time_ms(found.get("nbf", 0))
        if ends_ms is None or begins_ms is None:
            return Unauthenticated("a time of the token is none", _ANOTHER)
        if now_ms >= ends_ms + LEEWAY_MS:
            return Unauthenticated("the token has expired", _NEWER)
        if now_ms < begins_ms - LEEWAY_MS:
            return Unauthenticated("the token is not valid yet", "Wait, and set the clocks right.")
        claims = self._claims
        named = _claim(found, claims.principal)
        principal = f"{claims.prefix}{named}"
        if not isinstance(named, str) or not named or not is_principal(principal) or principal.startswith(CERTIFIED):
            return Unauthenticated(f"the token's claim {claims.principal} is no name of a principal", _ANOTHER)
        groups = _texts(_claim(found, claims.groups))
        digest = hashlib.sha256(token.encode()).hexdigest()[:12]
        return Identity(
            principal,
            groups=frozenset(f"{claims.prefix}{each}" for each in groups),
            expires_ms=ends_ms + LEEWAY_MS,
            credential=f"jwt:{digest}",
        )


def _time_ms(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LAST_S:
        return None
    return int(value * 1000)


def _claim(found: Mapping[str, object], path: str) -> object:
    """The claim of this whole name, or, step by step, of the names between dots; None without one."""
    if path in found:
        return found[path]
    value: object = found
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _texts(value: object) -> list[str]:
    """Issuers send one group as a text."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]
