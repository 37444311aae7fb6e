"""Settings of a coordinator. Each describes its cost and its relation to others."""

import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from headgate_coordinator.redis_url import has_password, redis_url_problem
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address, ByteSize, Duration, NamedValues, Words

_NAME = re.compile(r"[!-~]{1,255}")


class CoordinatorSettings(ServiceSettings):
    """A coordinator's settings."""

    store: str = Field(
        description="root of the cluster's tables: a folder, file:///folder, s3://bucket/prefix, gs://bucket/prefix, "
        "az://container/prefix or abfss://container@account.dfs.core.windows.net/prefix; the same for all coordinators"
    )
    storage_options: NamedValues = Field(
        default_factory=dict,
        repr=False,
        description="settings of the object store as name=value,… (S3: endpoint, region, access_key_id, …); others "
        "come from AWS_*, GOOGLE_* or AZURE_*; docs/operations.md has the credentials of each",
    )
    redis: str = Field(
        "redis://127.0.0.1:6379/0",
        repr=False,
        description="an instance for leases only (maxmemory-policy noeviction); losing it costs takeovers, never data. "
        "rediss://USER:PASSWORD@host:port/0 with TLS and an ACL user, unix://USER:PASSWORD@/path for a socket; with a password "
        "in the environment or the file, not as a flag",
    )
    redis_password: SecretStr = Field(
        SecretStr(""),
        description="the password of redis's user as it is, where redis has none: in an address some of its characters would "
        "have to be written as %2F; from the environment or the file, never as a flag",
    )
    redis_ca: str = Field("", description="PEM file of the authority that signed Redis's certificate; empty: the system's")
    redis_cert: str = Field("", description="PEM file of this coordinator's certificate, for a Redis that asks for one")
    redis_key: str = Field("", description="PEM file of its private key")
    cluster: str = Field("headgate", description="names the cluster in Redis; coordinators of one store share it")
    name: str = Field(
        "",
        description="name that survives restarts (a StatefulSet's pod name), so that it takes its own leases back at once; "
        "unique in the cluster; empty: the advertised address",
    )
    front: Words = Field(
        [],
        description="host:port of load balancers or gateways in front of all coordinators and writers, separated by commas: "
        "clients that connect to one of them send everything there. Empty: such clients have to say so themselves, by "
        "front=True, or they call the advertised addresses",
    )
    checkpoint_interval: Duration = Field(
        10.0,
        gt=0,
        description="longest time between checkpoints while rows come; shorter: rows are visible sooner, "
        "and each checkpoint costs a few small files a bucket, and PUTs on S3",
    )
    checkpoint_min_interval: Duration = Field(
        0.5,
        gt=0,
        description="a client's flush starts a checkpoint no sooner than this after the last; at most checkpoint_interval",
    )
    checkpoint_bytes: ByteSize = Field(
        256 << 20,
        gt=0,
        description="uncommitted bytes of a table at one writer that start a checkpoint early; below the writers' memory limit",
    )
    checkpoint_timeout: Duration = Field(
        30.0,
        gt=0,
        description="a checkpoint without progress for so long is aborted and its rows are sent again; a slow one is not. "
        "Above what the largest single file takes, and above writer_timeout; flushes are kept to a sixth of it",
    )
    writer_timeout: Duration = Field(
        1.5,
        gt=0,
        description="a writer is lost after this silence; shorter: recovery is faster, but writers of a busy machine are lost "
        "without need, and their rows are sent again; at least three times heartbeat_interval",
    )
    heartbeat_interval: Duration = Field(
        0.4, ge=0.01, le=3600, description="how often writers report that they live and what they hold: 10ms to 1h"
    )
    lease_ttl: Duration = Field(
        5.0, ge=1, description="a dead coordinator's tables are taken over after this; at least three times lease_renewal"
    )
    lease_renewal: Duration = Field(1.5, gt=0, description="how often leases are renewed: one transaction for all of them")
    scan_interval: Duration = Field(
        1.0,
        gt=0,
        description="how often the store is listed for new tables; leases of others are read five times as often",
    )
    start_timeout: Duration = Field(
        0.0,
        ge=0,
        description="how long a coordinator that has just started waits for Redis's first answer, and for a store that can be "
        "listed and, before its first table, written; not ready meanwhile. Then it ends with the reason, for whatever restarts "
        "it: the chart sets 60s, so that kubectl describe shows the reason. 0: it waits as long as it takes, and its log says "
        "for what. Shorter: a wrong setting shows sooner; longer: fewer restarts while both are still starting",
    )
    channel_retention: Duration = Field(
        30 * 86400.0,
        gt=0,
        description="an idle channel is forgotten after this, or up to twice this when its table changed hands meanwhile, and "
        "its producer starts over at offset 0; keep it above the longest pause after which a producer resumes",
    )
    drain_timeout: Duration = Field(
        10.0,
        gt=0,
        description="on SIGTERM, how long checkpoints may make no progress before their tables are handed over regardless, and "
        "clients send again what was not committed. While they go on, a drain takes up to 15 s more: give the platform's grace "
        "period at least 20 s above this value. As long, at most, tables are kept while Redis does not answer, because no other "
        "coordinator could take them",
    )
    service_interval: Duration = Field(
        1.0,
        gt=0,
        description="how often each table is checked for due compaction, cleaning and archiving, besides after each checkpoint; "
        "a check reads memory and costs a table without work next to nothing",
    )
    expiry_interval: Duration = Field(
        600.0,
        gt=0,
        description="how often each table with headgate.ttl is checked for partitions past their time, first so long after its "
        "ownership began; each removal of some pauses the table as a takeover does",
    )
    compaction_timeout: Duration = Field(
        1200.0,
        gt=0,
        description="an operation without progress at its compactor for so long has failed there, and is tried again; a "
        "slow one is left alone",
    )
    compaction_pause: Duration = Field(
        5.0,
        gt=0,
        description="pause before a failed operation, or a plan that the store refused, is tried again; doubled each time, "
        "up to 32 times the first",
    )
    compactor_timeout: Duration = Field(
        10.0,
        ge=0.1,
        le=36000,
        description="a compactor is lost after this silence and others get its operations; shorter: a dead one is noticed "
        "sooner, but work of a busy one is thrown away. Its heartbeats come ten times as often: 100ms to 10h",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name in ("cluster", "name"):
            value = getattr(self, name)
            if value and not _NAME.fullmatch(value):
                raise ValueError(f"{name}={value!r}: want 1 to 255 visible ASCII characters without spaces")
        for address in self.front:
            Address.parse(address)
        self._check_redis()
        if self.checkpoint_min_interval > self.checkpoint_interval:
            raise ValueError("checkpoint_min_interval is above checkpoint_interval")
        if self.checkpoint_timeout <= self.writer_timeout:
            raise ValueError("checkpoint_timeout has to be above writer_timeout")
        if self.writer_timeout < 3 * self.heartbeat_interval:
            raise ValueError("writer_timeout has to be at least three times heartbeat_interval: one late beat is no loss")
        if self.lease_ttl < 3 * self.lease_renewal:
            raise ValueError("lease_ttl has to be at least three times lease_renewal: one lost renewal is no loss")
        return self

    def _check_redis(self) -> None:
        if problem := redis_url_problem(self.redis):
            raise ValueError(f"redis: {problem}")
        password = self.redis_password.get_secret_value()
        if not password.isprintable():
            raise ValueError("redis_password: want visible characters; is there a line's end?")
        if password and has_password(self.redis):
            raise ValueError("redis_password: redis has a password, too; leave one of them out")
        files = {name: getattr(self, name) for name in ("redis_ca", "redis_cert", "redis_key")}
        if not self.redis.startswith("rediss:") and (given := [name for name, path in files.items() if path]):
            raise ValueError(f"{given[0]} is for TLS: write redis as rediss://host:port/0")
        if bool(self.redis_cert) != bool(self.redis_key):
            raise ValueError("redis_cert and redis_key belong together: give both or none")
        for name, path in files.items():
            if path and not Path(path).is_file():
                raise ValueError(f"{name}: there is no file {path}")
