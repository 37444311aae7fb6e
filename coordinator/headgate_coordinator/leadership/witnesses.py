"""Other clocks: Redis (TIME), and the object store (the Date header of any answer, even of a refusal)."""

import asyncio
import http.client
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from headgate_coordinator.leadership.leases import Leases
from headgate_coordinator.leadership.redis_access import host_of, is_this_host
from headgate_coordinator.tables.guarded_clock import GuardedClock, TimeWitness
from headgate_runtime.world import Clock

STORE_EVERY_S = 10.0
"""Between two requests to the store, which cost nothing."""
ANSWER_S = 5.0


class TimeWitnesses:
    """Passes the witnesses' readings to ``guard``. ``threads``: for the blocking requests to the store."""

    def __init__(
        self,
        leases: Leases,
        redis: str,
        store: str,
        options: Mapping[str, str],
        guard: GuardedClock,
        clock: Clock,
        threads: Executor,
    ) -> None:
        self._leases = leases
        self._redis = TimeWitness("Redis", independent=not is_this_host(host_of(redis)))
        self._endpoint = endpoint_of(store, options)
        self._store = TimeWitness("the store", independent=not is_this_host(urlsplit(self._endpoint).hostname or ""))
        self._guard = guard
        self._clock = clock
        self._threads = threads

    async def ask_redis(self) -> None:
        """Reads Redis's clock; no answer is no reading."""
        asked = self._clock.monotonic()
        if (ms := await self._leases.time_ms()) is not None:
            self._guard.note_reading(self._redis, ms, (asked + self._clock.monotonic()) / 2)

    async def ask_store(self) -> None:
        """Reads the store's clock, at once and then every ``STORE_EVERY_S``, until cancelled."""
        while self._endpoint:
            asked = self._clock.monotonic()
            ms = await asyncio.get_running_loop().run_in_executor(self._threads, server_time_ms, self._endpoint)
            if ms is not None:
                self._guard.note_reading(self._store, ms, (asked + self._clock.monotonic()) / 2)
            await self._clock.sleep(STORE_EVERY_S)


def endpoint_of(store: str, options: Mapping[str, str]) -> str:
    """Where an object store answers; "" for a folder, and for an account of Azure's that only its client finds out."""
    given = {name.lower(): value for name, value in (os.environ | dict(options)).items()}

    def first(*names: str) -> str:
        return next((value for name in names if (value := given.get(name))), "")

    scheme, _, rest = store.partition("://")
    match scheme.lower():
        case "s3":
            region = first("region", "aws_region", "aws_default_region") or "us-east-1"
            named = first("endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url")
            return named or f"https://s3.{region}.amazonaws.com"
        case "gs":
            return first("base_url", "google_base_url") or "https://storage.googleapis.com"
        case "az" | "abfss":
            account = first("account_name", "azure_storage_account_name")
            host = rest.partition("/")[0].partition("@")[2].replace(".dfs.", ".blob.", 1)
            default = host or (f"{account}.blob.core.windows.net" if account else "")
            return first("endpoint", "azure_storage_endpoint", "azure_endpoint") or (f"https://{default}" if default else "")
        case _:
            return ""


def server_time_ms(endpoint: str) -> float | None:
    """The Date header of an answer, in ms since the epoch, at the middle of its second; None without one."""
    place = urlsplit(endpoint)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = kind(place.hostname or "", place.port, timeout=ANSWER_S)
    try:
        connection.request("HEAD", "/")
        date = connection.getresponse().getheader("Date")
        return parsedate_to_datetime(date).timestamp() * 1000 + 500 if date else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
