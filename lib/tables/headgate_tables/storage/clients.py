"""obstore's clients of one bucket: for creates, for creates of large files, and for everything else.

A create is conditional with all of them: If-None-Match with S3 and Azure, ``x-goog-if-generation-match: 0`` with Google.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, assert_never

from obstore.store import AzureStore, GCSStore, S3Store

from headgate_tables.errors import OptionError
from headgate_tables.storage.address import Service, StoreAddress

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

ENVIRONMENT = {Service.S3: "AWS_", Service.GCS: "GOOGLE_", Service.AZURE: "AZURE_"}
"""Prefixes of the environment variables that fill in what storage options leave out."""

_UPLOAD_SECONDS = 600
"""For one large file, unless the options set a timeout. Too short for an upload, it would fail every attempt."""

_HEADERS = re.compile(r"(access_key_id|secret_access_key|token)$", re.IGNORECASE)
_ADDRESSES = re.compile(r"(endpoint(_url\w*)?|base_url)$", re.IGNORECASE)
_USER = re.compile(r"https?://[^/]*@", re.IGNORECASE)

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket and what its clients are made with. ``environment``: what obstore reads of it; a change makes new clients."""

    service: Service
    name: str
    options: Settings = field(repr=False)
    environment: Settings = field(repr=False)


def bucket_client(address: StoreAddress, options: Mapping[str, str]) -> Bucket:
    """``options`` are obstore's settings for the service as text."""
    prefix = ENVIRONMENT[address.service]
    environment = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    return Bucket(address.service, address.bucket, tuple({**options, **address.settings}.items()), tuple(environment.items()))


def check_values(bucket: Bucket, url: str) -> None:
    """Refuses values on which obstore panics, or which its errors would repeat. Raises OptionError, which does not repeat them.

    A key's JSON may have several lines; of the environment only what obstore reads is looked at.
    """
    for name, value in (*bucket.environment, *bucket.options):
        if _HEADERS.search(name) and not value.isprintable():
            raise OptionError(
                f"{url}: {name} holds a character that no credential has, such as a line's end", fix="Give it without that."
            )
        if _ADDRESSES.search(name) and _USER.match(value):
            raise OptionError(
                f"{url}: {name} holds a user and a password", fix="Give the address alone; errors and logs repeat addresses."
            )


@lru_cache(maxsize=16)
def clients(bucket: Bucket) -> tuple[ObjectStore, ObjectStore]:
    """One for creates and one for all else, shared by the bucket's tables: each costs 5 ms, 100 kB and connections of its own.

    Raises obstore's UnknownConfigurationKeyError and GenericError for settings that are wrong or too few.
    """
    # With retries on, the client's second try of a create that had succeeded comes back as "exists" (rule C3).
    creates = _client(bucket, {"max_retries": 0})
    return creates, _client(bucket, {"max_retries": 8, "retry_timeout": timedelta(seconds=30)})


@lru_cache(maxsize=16)
def upload_client(bucket: Bucket) -> ObjectStore:
    """For creates of large files: like the client for creates, with more time."""
    prefix = ENVIRONMENT[bucket.service].lower()
    given = [name for name, _ in (*bucket.options, *bucket.environment)]
    limited = any(name.lower().removeprefix(prefix) == "timeout" for name in given)
    # Not a client option: with one, obstore ignores those of the environment (AWS_ALLOW_HTTP).
    return _client(bucket, {"max_retries": 0}, {} if limited else {"timeout": f"{_UPLOAD_SECONDS} seconds"})


def _client(bucket: Bucket, retries: RetryConfig, more: Mapping[str, str] | None = None) -> ObjectStore:
    # For S3 the environment could turn conditional creates off; this overrides it.
    fixed = {"conditional_put": "etag"} if bucket.service is Service.S3 else {}
    config: Any = {**dict(bucket.options), **(more or {}), **fixed}
    match bucket.service:
        case Service.S3:
            return S3Store(bucket.name, config=config, retry_config=retries)
        case Service.GCS:
            return GCSStore(bucket.name, config=config, retry_config=retries)
        case Service.AZURE:
            return AzureStore(bucket.name, config=config, retry_config=retries)
        case _:
            assert_never(bucket.service)
