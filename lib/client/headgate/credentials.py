"""What a program shows to a cluster, and whom it trusts: PEM files and a token, which are renewed while the program runs.

They are looked at before each call and each stream, by their content. Python's gRPC takes the content of PEM files once for each
channel, so a renewal takes a new channel (``headgate.transport``).
"""

import logging
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import grpc

from headgate.errors import HeadgateError, InvalidArgumentError
from headgate.profiles import find_profile

_log = logging.getLogger("headgate")
Content = TypeVar("Content")
_RULE = "a token has visible ASCII characters alone, without spaces"


@dataclass(frozen=True, slots=True)
class Pem:
    """The content of the files of a ``Tls``. Without ``ca`` the system's authorities are trusted."""

    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)

    def credentials(self) -> grpc.ChannelCredentials:
        """For a channel."""
        return grpc.ssl_channel_credentials(self.ca, self.key, self.certificate)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a call shows. ``token``: a bearer token; ``pem``: what TLS takes. None: none."""

    token: str | None = field(default=None, repr=False)
    pem: Pem | None = None


Look = Callable[[], Shown]
"""Returns what the next call shows."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the trusted authorities and, for a cluster that knows clients by certificates, the client's own and its key.

    Without ``ca`` the system's authorities are trusted. Files that are renewed are read again: what connects from then on uses
    them, and open connections stay until their end. A certificate counts only with its own key, so that the two may be replaced
    one after the other, and until a file can be used what it held before is used::

        headgate.connect("headgate.example.org:7070", tls=headgate.Tls(ca="ca.pem"), token="my-token")
        headgate.connect("headgate.example.org:7070", tls=headgate.Tls("ca.pem", certificate="me.pem", key="me.key"))
    """

    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def read(self, known: Pem | None) -> Pem:
        """What is in the files. ``known``: what was in them before, and could be used.

        Raises OSError for a file that cannot be read, InvalidArgumentError for what TLS cannot use.
        """
        if bool(self.certificate) != bool(self.key):
            raise InvalidArgumentError("a client's certificate and its key belong together", fix="Give both, or none.")
        found = self._content(known)
        while found != known:
            self._check(found)  # of the two files as they are by now
            found, known = self._content(found), found
        return found

    def _content(self, known: Pem | None) -> Pem:
        before = known or Pem()
        return Pem(_read(self.ca, before.ca), _read(self.certificate, before.certificate), _read(self.key, before.key))

    def _check(self, found: Pem) -> None:
        """Raises InvalidArgumentError for what TLS cannot use."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_ciphers("ALL:@SECLEVEL=0")  # which keys are too weak is for gRPC to say
        if found.ca is not None:
            try:
                context.load_verify_locations(cadata=found.ca.decode("ascii", "ignore"))
            except (ValueError, ssl.SSLError):
                what = f"{self.ca} is no PEM file of certificates"
                raise InvalidArgumentError(what, fix="Name that of the cluster's authority.") from None
        if self.certificate and self.key and not (_is_pipe(self.certificate) or _is_pipe(self.key)):
            # A file that is replaced in place is empty first. If it was so when it was read, what OpenSSL finds in it now is no
            # answer: the next reading may meet the empty half of another pair, and take the two for the same.
            was_empty = not (found.certificate and found.key)
            if was_empty or not _is_pair(context, self.certificate, self.key):
                raise InvalidArgumentError(
                    f"{self.certificate} and {self.key} are not PEM files of a certificate and of its key, without a password",
                    fix="Give the two that were issued together.",
                )


def _is_pair(context: ssl.SSLContext, certificate: str | Path, key: str | Path) -> bool:
    """By the files themselves: OpenSSL takes no content."""
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError:  # ssl.SSLError is one, and one of the files may have gone meanwhile
        return False
    return True


def look_for(addresses: Sequence[str], token: str | Path | None, tls: Tls | bool | None) -> Look:
    """By what the caller gave; without anything by the profile of a cluster on this machine. Raises as ``given``."""
    if token is None and tls is None:
        return of_this_machine(addresses, os.environ)
    return given(token, Tls() if tls is True else tls or None)


def given(token: str | Path | None, tls: Tls | None) -> Look:
    """What the caller gave. Raises what ``Tls.read`` does, the same for the file of a token, InvalidArgumentError for a token."""
    file = _Kept(partial(_token_in, token)) if isinstance(token, Path) else None
    text = _checked(token) if token and not isinstance(token, Path) else None
    pems = _Kept(tls.read) if tls else None
    return lambda: Shown(file.look() if file else text, pems.look() if pems else None)


def of_this_machine(addresses: Sequence[str], environment: Mapping[str, str]) -> Look:
    """By the profile of a cluster of this machine, which may come, and be renewed, while the program runs; nothing before.

    Raises InvalidArgumentError for a profile that does not count.
    """

    def read(known: Shown | None) -> Shown:
        profile = find_profile(addresses, environment)
        return Shown(profile.token, Pem(profile.authority.encode())) if profile else known or Shown()

    return _Kept(read).look


def _token_in(path: Path, known: str | None) -> str:
    content = _read(path, known.encode() if known else None) or b""
    if not _is_token(text := content.decode("latin-1").strip()):
        raise InvalidArgumentError(f"{path}: {_RULE}, and this is none", fix="Write it alone into the file.")
    return text


def _checked(token: str) -> str:
    if not _is_token(token):
        raise InvalidArgumentError(f"{_RULE}, and this one has others", fix="Pass it without the end of its line.")
    return token


def _is_token(text: str) -> bool:
    """Whether it can stand in a header."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _read(path: str | Path | None, known: bytes | None) -> bytes | None:
    if not path or (known is not None and _is_pipe(path)):
        return known
    return Path(path).read_bytes()


def _is_pipe(path: str | Path) -> bool:
    """It can be read once, and nobody renews it: ``<(command)`` of a shell."""
    return Path(path).is_fifo()


class _Kept(Generic[Content]):
    """The content of files as it last could be used. ``read`` takes this, and raises for what cannot be used now."""

    def __init__(self, read: Callable[[Content | None], Content]) -> None:
        self._read = read
        self._content = read(None)
        self._has_complained = False

    def look(self) -> Content:
        """Logs a failure, once until it is over."""
        try:
            self._content = self._read(self._content)
            self._has_complained = False
        except (OSError, HeadgateError) as error:
            if not self._has_complained:
                said = f"{error.filename}: {error.strerror}." if isinstance(error, OSError) else error
                _log.warning("%s Until then, what was read before counts.", said)
            self._has_complained = True
        return self._content
