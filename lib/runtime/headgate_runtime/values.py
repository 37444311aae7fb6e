"""Values of settings as people write them: "10s", "256MiB", "a, b", "host:port"."""

import ipaddress
import json
import math
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

_DURATION_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTE_UNITS: Mapping[str, float] = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LONGEST_S = 36500 * 86400.0
"""A hundred years: in milliseconds, everything that waits and stores times can hold it."""
_MOST_BYTES = 1 << 60
_MAPPED = bytes(10) + b"\xff\xff"
"""Before an IPv4 address in IPv6."""
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def duration(value: object) -> object:
    """Returns the seconds of "500ms", "10s", "5m", "2h" or "30d". Raises ValueError, also for a number without a unit."""
    return value if _is_number(value) else _in_units(value, _DURATION_UNITS, 'a duration such as "500ms", "10s" or "5m"')


def byte_size(value: object) -> object:
    """Returns the bytes of "64KiB", "256MiB", "1.5GiB" or "10MB" (decimal). Raises ValueError, also without a unit."""
    if _is_number(value):
        return value
    return round(_in_units(value, _BYTE_UNITS, 'a size such as "64KiB", "256MiB" or "1GiB"'))


def word_list(value: object) -> object:
    """Returns the words of "a, b", none for an empty text."""
    return _words(value) if isinstance(value, str) else value


def as_written(value: object, metadata: Sequence[object]) -> str:
    """Returns a default as a user would write it. ``metadata``: the annotations of its field."""
    kinds = {note.func for note in metadata if isinstance(note, BeforeValidator)}
    units = _DURATION_UNITS if duration in kinds else _BYTE_UNITS if byte_size in kinds else {}
    if isinstance(value, int | float):
        for unit, size in sorted(units.items(), key=lambda entry: -entry[1]):
            if value >= size and value / size == round(value / size):
                return f"{round(value / size)}{unit}"
    return ", ".join(value) if isinstance(value, list) else str(value)


Duration = Annotated[float, BeforeValidator(duration), Field(ge=0, le=_LONGEST_S)]
"""Seconds. Text needs a unit."""

ByteSize = Annotated[int, BeforeValidator(byte_size), Field(ge=0, le=_MOST_BYTES)]
"""Bytes. Text needs a unit."""

Words = Annotated[list[str], NoDecode, BeforeValidator(word_list)]
"""Words. In text they are separated by commas."""


class Address(NamedTuple):
    """The address of a server. An IPv6 host has brackets in text, and none here."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Reads host:port. Raises ValueError for any other text."""
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is no host:port")
        if not host.isprintable() or " " in host:
            raise ValueError(f"{text!r} is no host:port: a host has no blanks")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it. Of all names only "localhost" counts as such."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_wildcard(self) -> bool:
        """Whether it is all addresses of a machine: 0.0.0.0, ::, and how else the system reads these ("0", no host)."""
        try:
            packed = ipaddress.ip_address(self.host).packed
        except ValueError:
            packed = _inet_aton(self.host)
        return not any(packed.removeprefix(_MAPPED))


def _inet_aton(host: str) -> bytes:
    try:
        return socket.inet_aton(host)
    except OSError:
        return host.encode()  # a name


def is_safe_url(address: str) -> bool:
    """Whether what comes from there is the server's own: https, or http on this machine."""
    try:
        parts = urlsplit(address)
        here = Address(parts.hostname or "", parts.port or 0).is_loopback
    except ValueError:
        return False
    scheme_fits = parts.scheme == "https" or (parts.scheme == "http" and here)
    return scheme_fits and bool(parts.hostname) and parts.username is None and address.isprintable()


def local_address(value: object) -> object:
    """The host:port of "9090" or ":9090" is one that only this machine reaches; a host that is named stands."""
    port = value.removeprefix(":") if isinstance(value, str) else ""
    return f"127.0.0.1:{port}" if port.isascii() and port.isdigit() else value


LocalAddress = Annotated[str, BeforeValidator(local_address)]
"""host:port, or a port of this machine alone."""


def named_values(value: object) -> object:
    """Reads ``name=value,name=value``, or a JSON object, which values with a comma need."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    words = [word.split("=", 1) for word in _words(value)]
    if any(len(word) != 2 for word in words):
        raise ValueError("want name=value,name=value or a JSON object")
    return {name.strip(): text.strip() for name, text in words}


NamedValues = Annotated[dict[str, str], NoDecode, BeforeValidator(named_values)]
"""Values by name, for settings that another library defines, such as those of an object store."""


def is_named_values(metadata: Sequence[object]) -> bool:
    """Whether the annotations are those of a ``NamedValues`` field."""
    return any(isinstance(note, BeforeValidator) and note.func is named_values for note in metadata)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _is_number(value: object) -> bool:
    """Whether the value is a number. Numbers come from code and from defaults, whose unit the field documents."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _in_units(value: object, units: Mapping[str, float], wanted: str) -> float:
    found = _NUMBER_AND_UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"{value!r} is not {wanted}; units: {', '.join(units)}")
    if math.isinf(number := float(found[1]) * units[found[2]]):
        raise ValueError(f"not {wanted}: the number is too large")
    return number
