"""The settings of a writer."""

from typing import Annotated

from pydantic import Field, model_validator

from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address, ByteSize, Duration, NamedValues, Words

_MIB = 1 << 20
PROCESS_BYTES = 192 * _MIB
"""Interpreter, libraries, threads and gRPC before the first row: 130 MiB measured, the rest is what malloc keeps."""


class WriterSettings(ServiceSettings):
    """Memory: of ``memory_limit``, PROCESS_BYTES are the process itself.

    A quarter of the rest holds rows that wait or are buffered; the other three are what happens to them: messages being received,
    decoded and cut, blocks being encoded, exchange frames. (Half was 614 MiB with 32 clients in a hurry.)
    """

    coordinator: Words = Field(
        [], description="host:port of one or more coordinators, separated by commas; the others are found through them"
    )
    storage_options: NamedValues = Field(
        default_factory=dict,
        description="settings of the object store as name=value,… (S3: endpoint, region, access_key_id, …); what is left out "
        "comes from AWS_*, GOOGLE_* or AZURE_*; docs/operations.md has the credentials of each",
    )
    memory_limit: ByteSize = Field(
        512 * _MIB,
        description="what the process may use in all. Rows fill up to a quarter of what the process itself (192MiB) leaves; "
        "past that clients are not read. More lets clients run further ahead of the store",
    )
    max_in_flight: ByteSize = Field(
        256 * _MIB,
        description="bytes of one channel's batches that are not yet queryable; past it the channel is not read, at half of it a "
        "checkpoint is started",
    )
    threads: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="threads that decode and route rows, and as many again that write files; about one for each core"
    )
    attach_timeout: Duration = Field(
        5.0, description="how long an open waits for a table that nobody owns just now, before the client is told to try again"
    )
    drain_timeout: Duration = Field(
        40.0,
        description="after SIGTERM: how long accepted rows may take to be committed. Above the coordinators' checkpoint_timeout "
        "(30s); past it they are sent again by their clients to another writer",
    )

    @property
    def buffer_bytes(self) -> int:
        """The hard limit of rows in memory: those that wait, those in buckets, and exchange frames."""
        return (self.memory_limit - PROCESS_BYTES) // 4

    @property
    def ingest_bytes(self) -> int:
        """Of these, what may wait to be routed before clients are not read. A second of a client at full speed."""
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
