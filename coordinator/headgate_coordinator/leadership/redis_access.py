"""How coordinators reach Redis: its address, with an ACL user, a socket or TLS."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from headgate_coordinator.settings import CoordinatorSettings

ANSWER_S = 1.0
"""Timeout of an answer. Longer: a hanging Redis delays the next look; shorter: a busy one looks unreachable."""


def open_redis(url: str, *, ca: str = "", cert: str = "", key: str = "") -> Redis:
    """A client that connects with its first command, and reads the PEM files again for each connection.

    ``url``: redis://, rediss:// (TLS: the server shows a certificate for its name, signed by ``ca`` or, without one, by the
    system's authorities) or unix://; with user and password before an @. ``cert`` and ``key``: for a server that asks for them.
    """
    tls: dict[str, Any] = {}
    if url.startswith("rediss:"):
        tls = {"ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_ca_certs": ca or None}
        tls |= {"ssl_certfile": cert or None, "ssl_keyfile": key or None}
    # One try: callers ask again anyway, and a retried answer would be older than it looks.
    return Redis.from_url(
        url, decode_responses=True, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0), **tls
    )


def redis_of(settings: CoordinatorSettings) -> Redis:
    """The client that the settings describe."""
    return open_redis(settings.redis, ca=settings.redis_ca, cert=settings.redis_cert, key=settings.redis_key)


def host_of(url: str) -> str:
    """The host's name or address; "" for a socket, which is on this machine."""
    return urlsplit(url).hostname or ""


def shown_address(url: str) -> str:
    """The address without user, password and options, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_this_host(host: str) -> bool:
    """Whether the text of a host name or address certainly means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


def plaintext_problem(url: str) -> str | None:
    """What others on the network learn or may do, in one sentence; None: nothing."""
    if url.startswith("rediss:") or is_this_host(host_of(url)):
        return None
    if urlsplit(url).password is None:
        return "anybody who reaches Redis may take the leases of tables: give it TLS and an ACL user (rediss://USER:PASSWORD@…)"
    return "its password goes over the network in plaintext: use rediss:// and redis_ca"
