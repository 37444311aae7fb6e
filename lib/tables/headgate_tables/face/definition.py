"""What a table is, as services see it."""

import uuid
from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from headgate_tables.face.bucket_rules import BucketRules


class Definition(Protocol):
    """Keys, partitions, ordering and buckets. An adoption changes them, and a rescale the buckets; ``opening`` makes one of what
    an owner sends.
    """

    @property
    def name(self) -> str:
        """The table's name."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that rows are stored with, without those that the format adds."""

    @property
    def record_key(self) -> tuple[str, ...]:
        """Columns that identify a row."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Empty for a table without partitions."""

    @property
    def ordering(self) -> str | None:
        """The column whose larger value wins; None: the later write wins."""

    @property
    def buckets(self) -> int:
        """File groups of one partition, unless a rule says otherwise."""

    @property
    def bucket_rules(self) -> BucketRules:
        """Partitions that have another number of them; the first rule that matches counts."""

    def buckets_in(self, partition: str) -> int:
        """File groups of the partition of this path."""

    @property
    def hive_style(self) -> bool:
        """Whether partition paths are ``column=value``."""

    @property
    def url_encode(self) -> bool:
        """Whether values in partition paths are encoded as in a URL."""

    @property
    def table_uuid(self) -> uuid.UUID:
        """Identifies this table, whatever others of its name there were."""

    @property
    def key_groups(self) -> int:
        """Number of the units in which buckets are assigned to writers."""

    @property
    def prefixed_keys(self) -> bool:
        """Whether record keys name their column, as in some tables of other programs."""

    @property
    def groups(self) -> Mapping[str, Mapping[int, str]]:
        """File group ids by partition and bucket, where other programs have made them."""

    @property
    def rescaled(self) -> str:
        """Instant of the newest rescale of all partitions, "" before any."""
