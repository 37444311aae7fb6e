"""Which Secret of a release has which of a cluster's credentials. Pure."""

from collections.abc import Mapping
from typing import Final

from headgate_cli.credentials.authority import SERVICES

TLS_SECRETS: Final = ("tls", "redis-tls", *(f"cluster-{service}" for service in SERVICES))
"""Those with tls.crt, tls.key and ca.crt, as cert-manager makes them: one for each kind of process, which gets no other's key."""

ENDS: Final = ("ca", *TLS_SECRETS, "access", "client", "redis", "s3")
"""Ends of their names, in the order in which they are written: the authorities first, or what they sign would be lost."""

_LINES: Final = ("password", "reload-password", "token")
"""Files that end with a line break, which a Secret's value does not: it may become an environment variable."""


def place_of(name: str) -> list[tuple[str, str]]:
    """Ends and keys of the Secrets that have a text of ``credentials.renewal`` ("FOLDER/FILE"); none: only a folder needs it."""
    folder, _, file = name.partition("/")
    match folder, file:
        case "cluster", "ca.crt":
            return [(f"cluster-{service}", file) for service in SERVICES]
        case "cluster", _:
            service, _, kind = file.partition(".")
            return [(f"cluster-{service}", f"tls.{kind}")]
        case "redis", "tls.crt" | "tls.key" | "ca.crt":
            return [("redis-tls", file)]
        case "redis", "settings.toml":
            return []
        case _:
            return [(folder, file)]


def texts_of(secrets: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """What the Secrets hold, by ``FOLDER/FILE``. Of a text that several have, the first counts."""
    found: dict[str, str] = {}
    for end, content in secrets.items():
        for key, value in content.items():
            name = _name_of(end, key)
            found.setdefault(name, value + "\n" if key in _LINES else value)
    return found


def secrets_with(secrets: Mapping[str, Mapping[str, str]], texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The Secrets that have to be written, whole, in their order: ``secrets`` with ``texts`` in their places.

    Several have the services' authority: one that is made anew gets it, though that did not change.
    """
    wants = {end: dict(secrets.get(end, {})) for end in ENDS}
    written = {end for name in texts for end, _ in place_of(name)}
    written |= {end for end in TLS_SECRETS if secrets.get(end) and "ca.crt" not in secrets[end]}
    for name, text in {**texts_of(secrets), **texts}.items():
        for end, key in place_of(name):
            if end in written:
                wants[end][key] = text.removesuffix("\n") if key in _LINES else text
    return {end: content for end, content in wants.items() if content and content != secrets.get(end)}


def _name_of(end: str, key: str) -> str:
    if end == "redis-tls":
        return f"redis/{key}"
    folder, _, service = end.partition("-")
    if folder == "cluster":
        return f"cluster/{key}" if key == "ca.crt" else f"cluster/{service}.{key.removeprefix('tls.')}"
    return f"{end}/{key}"
