"""The settings of a writer."""

from typing import Annotated

from pydantic import Field, model_validator

from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address, ByteSize, Duration, NamedValues, Words

_MIB = 1 << 20
PROCESS_BYTES = 192 * _MIB
"""Interpreter, libraries, threads and gRPC before the first row: 130 MiB (measured), and what malloc keeps."""


class WriterSettings(ServiceSettings):
    """Memory: PROCESS_BYTES of ``memory_limit`` are the process itself.

    A quarter of the rest is for rows that wait or are buffered, and three quarters for work on them: messages that are received,
    decoded and split, blocks that are encoded, exchange frames. (With one half for rows, 32 fast clients took 614 MiB.)
    ``process.door_limits`` says how many channels that is.
    """

    coordinator: Words = Field(
        [], description="host:port of one or more coordinators, separated by commas; the others are found through them"
    )
    store: str = Field(
        "",
        description="root below which all tables lie that this process opens, the same as the coordinators'; an order for a "
        "table elsewhere is refused. Empty: whatever a coordinator names is opened, with this process's rights; a "
        "warning at the start says so where others than this machine's processes take part",
    )
    storage_options: NamedValues = Field(
        default_factory=dict,
        repr=False,
        description="settings of the object store as name=value,… (S3: endpoint, region, access_key_id, …); what is left out "
        "comes from AWS_*, GOOGLE_* or AZURE_*; docs/operations.md has the credentials of each",
    )
    memory_limit: ByteSize = Field(
        1024 * _MIB,
        description="memory of the whole process. Rows take up to a quarter of what the process itself (192MiB) leaves; "
        "beyond that clients are not read. Higher: clients run further ahead of the store, and more channels are taken "
        "(1GiB: 191, 512MiB: 73)",
    )
    max_in_flight: ByteSize = Field(
        256 * _MIB,
        description="bytes of one channel's batches that are not yet queryable; beyond it the channel is not read, and from half "
        "of it a checkpoint is asked for",
    )
    threads: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="threads that decode and route rows, and as many again that write files; about one for each core"
    )
    attach_timeout: Duration = Field(
        5.0, description="how long an open waits for a table without an owner, before the client gets an error to try again"
    )
    start_timeout: Duration = Field(
        0.0,
        ge=0,
        description="how long coordinators may refuse this process, which has just started, for its token, kind or version. "
        "Then it ends with the reason, for whatever restarts it: the chart sets 60s, so that kubectl describe shows the reason. "
        "0: it waits as long as it takes, and its log says for what. A coordinator that cannot be reached is waited for in any "
        "case",
    )
    drain_timeout: Duration = Field(
        40.0,
        description="after SIGTERM: how long accepted rows may take to be committed; afterwards clients send them again, to "
        "another writer. Keep it above the coordinators' checkpoint_timeout (30s)",
    )

    @property
    def believes_others(self) -> bool:
        """Whether it opens whatever a coordinator names, and other machines reach it or may be its coordinators."""
        named = (self.listen, self.cluster_listen or self.listen, *self.coordinator)
        return not self.store and not all(Address.parse(each).is_loopback for each in named)

    @property
    def buffer_bytes(self) -> int:
        """The hard limit of rows in memory: in pipelines, in buckets, and in exchange frames."""
        return (self.memory_limit - PROCESS_BYTES) // 4

    @property
    def ingest_bytes(self) -> int:
        """The part of ``buffer_bytes`` that may wait to be routed before clients are not read: a second of one fast client."""
        return self.buffer_bytes // 4

    @model_validator(mode="after")
    def _fits(self) -> "WriterSettings":
        if not self.coordinator:
            raise ValueError("--coordinator: name at least one, host:port")
        for address in self.coordinator:
            Address.parse(address)
        if self.memory_limit < PROCESS_BYTES + 64 * _MIB:
            raise ValueError("--memory-limit: at least 256MiB; the process itself takes 192MiB")
        return self
