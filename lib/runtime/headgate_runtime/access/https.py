"""One small document from a web server: by TLS, within a time and a size, from the address that was asked and no other."""

import asyncio
import contextlib
import http.client
import socket
import ssl
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headgate_runtime.values import is_safe_url
from headgate_runtime.world import Clock

MOST_BYTES: Final = 1 << 20
SECONDS: Final = 5.0
"""For all of it: name, connection, TLS and answer."""

_PIECE: Final = 16 << 10


class FetchError(Exception):
    """There is no document; the text says why, for operators."""


async def fetch(address: str, clock: Clock) -> bytes:
    """The body of an answer 200 to GET; redirects are not followed. Authorities are the machine's (OpenSSL's SSL_CERT_FILE names
    others), proxies are not used. Raises FetchError.
    """
    if not is_safe_url(address):
        raise FetchError(f"{address} is neither https:// nor on this machine")
    try:
        return await _fetched(urlsplit(address), clock)
    except TimeoutError:
        raise FetchError(f"{address} did not answer within {SECONDS:g} s") from None
    except (FetchError, OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(f"{address}: {str(error) or type(error).__name__}") from None


async def _fetched(parts: SplitResult, clock: Clock) -> bytes:
    connection = _connection(parts.scheme, parts.hostname or "", parts.port)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        async with asyncio.timeout(SECONDS):
            return await asyncio.to_thread(_get, connection, path or "/", clock)
    finally:
        _cut(connection)


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=SECONDS)


def _get(connection: http.client.HTTPConnection, path: str, clock: Clock) -> bytes:
    ends = clock.monotonic() + SECONDS
    try:
        connection.request("GET", path, headers={"Accept": "application/json", "Connection": "close"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise FetchError(f"the answer's status is {answer.status}, and want 200")
        return _body(answer, ends, clock)
    finally:
        connection.close()


def _body(answer: http.client.HTTPResponse, ends: float, clock: Clock) -> bytes:
    found = b""
    while piece := answer.read1(_PIECE):
        found += piece
        if len(found) > MOST_BYTES:
            raise FetchError(f"the answer has more than {MOST_BYTES:,} bytes")
        if clock.monotonic() > ends:
            raise FetchError(f"the answer took more than {SECONDS:g} s")
    return found


def _cut(connection: http.client.HTTPConnection) -> None:
    """Ends a read on the other thread."""
    used: socket.socket | None = connection.sock
    if used is not None:
        with contextlib.suppress(OSError):
            used.shutdown(socket.SHUT_RDWR)
