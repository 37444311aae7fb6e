"""What an address of Redis may look like. Pure."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

_NO_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DATABASE: Final = re.compile(r"/?\d*", re.ASCII)
_WANTED: Final = "want redis://host:port/0, rediss://host:port/0 or unix:///path"
_ESCAPES: Final = (
    f"{_WANTED}, with USER:PASSWORD@ before the host. In these two, write / as %2F, % as %25, ? as %3F and # as %23, or "
    "give the password as redis_password"
)


def redis_url_problem(url: str) -> str | None:
    """Why no client would read the address as it is meant, in words that repeat nothing of it: half of a password may be what
    looks like a port. None: nothing.
    """
    scheme, colon, _ = url.partition("://")
    if not colon or scheme not in ("redis", "rediss", "unix"):
        return _WANTED
    try:
        fits = _fits(url)
    except ValueError:  # of the port, of brackets, of an option
        fits = False
    return None if fits else _ESCAPES


def has_password(url: str) -> bool:
    """Whether a user's password is in an address without problems."""
    parts = urlsplit(url)
    return bool(parts.password) or any(name == "password" for name, _ in parse_qsl(parts.query))


def _fits(url: str) -> bool:
    """Raises ValueError for what is none of an address's parts."""
    parts = urlsplit(url)
    parse_qsl(parts.query, strict_parsing=bool(parts.query))
    if not url.isprintable() or parts.fragment or _NO_ESCAPE.search(url):
        return False
    if parts.scheme == "unix":
        return parts.netloc.rpartition("@")[2] == "" and bool(parts.path)
    return parts.port != 0 and _DATABASE.fullmatch(parts.path) is not None
