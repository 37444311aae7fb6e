"""How coordinators reach Redis: its address, with an ACL user, a socket or TLS."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.maint_notifications import MaintNotificationsConfig

from headgate_coordinator.redis_url import has_password
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.lifecycle import StartError

ANSWER_S = 1.0
"""Timeout of an answer. Longer: a hanging Redis delays the next look; shorter: a busy one looks unreachable."""


def open_redis(url: str, *, password: str = "", ca: str = "", cert: str = "", key: str = "") -> Redis:
    """A client that connects with its first command, and reads the PEM files again for each connection.

    ``url``: redis://, rediss:// (TLS: the server shows a certificate for its name, signed by ``ca`` or, without one, by the
    system's authorities) or unix://; with user and password before an @. ``cert`` and ``key``: for a server that asks for them.
    ``password``: of the address's user, if the address has none. Raises StartError for an option that the client does not know.
    """
    given: dict[str, Any] = {"password": password or None}
    if url.startswith("rediss:"):
        given |= {"ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_ca_certs": ca or None}
        given |= {"ssl_certfile": cert or None, "ssl_keyfile": key or None}
    given |= {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
    # A pool that listens for notices of maintenance hands out connections that the server has closed, and a command sent there
    # is lost: a freed lease would stay for its whole time.
    given["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    try:
        # One try: callers ask again anyway, and a retried answer would be older than it looks.
        client = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0), **given)
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # reads the options, which the first command would do else
    except (TypeError, ValueError, RedisError):
        raise StartError(
            "redis: the client does not know an option behind the ? of its address; correct it, or leave it out."
        ) from None
    return client


def redis_of(settings: CoordinatorSettings) -> Redis:
    """The client that the settings describe."""
    password = settings.redis_password.get_secret_value()
    return open_redis(settings.redis, password=password, ca=settings.redis_ca, cert=settings.redis_cert, key=settings.redis_key)


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


def plaintext_problem(settings: CoordinatorSettings) -> str | None:
    """What others on the network learn or may do, in one sentence; None: nothing."""
    url = settings.redis
    if url.startswith("rediss:") or is_this_host(host_of(url)):
        return None
    if not (has_password(url) or settings.redis_password):
        return "anybody who reaches Redis may take the leases of tables: give it TLS and an ACL user (rediss://USER:PASSWORD@…)"
    return "its password goes over the network in plaintext: use rediss:// and redis_ca"
