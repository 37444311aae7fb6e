"""The options of ``df.write.format("headgate")`` and ``df.writeStream.format("headgate")``: with ``connect``, and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from headgate_spark import cluster_access
from headgate_spark.cluster_access import ClusterAccess
from headgate_spark.given import STORAGE, given_options, in_small_letters, one_of, storage_options, table_named
from headgate_tables.errors import OptionError

if TYPE_CHECKING:
    import headgate
    from headgate.acks import Level

NAMES: Final = ("path", "channel", "operation", "level", "timeout", *cluster_access.NAMES)
_OF_SPARK: Final = ("checkpointLocation", "queryName")
"""Spark hands on what is for itself, too."""
Operation = Literal["upsert", "delete"]


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """``table``: its name in the cluster. ``channel``: what the channels of tasks begin with. ``level``: what a
    task waits for. ``timeout``: seconds that it waits for room, and for the level.
    """

    table: str
    access: ClusterAccess
    channel: str
    operation: Operation = "upsert"
    level: Level = "queryable"
    timeout: float = 60.0

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SinkOptions:
        """From Spark's, whose names have no case. Raises OptionError for one that is unknown, missing or has a wrong value."""
        given = given_options(options, [*NAMES, *_OF_SPARK])
        table = table_named(given, 'Give its name in the cluster: .save("orders").')
        if not given.get("channel"):
            raise OptionError(
                "there is no 'channel'",
                fix='Say how channels begin: .option("channel", "orders"). Jobs that run at once need different ones.',
            )
        return cls(
            table,
            ClusterAccess.of(given),
            given["channel"],
            _operation(given),
            one_of("level", given.get("level", "queryable"), ("durable", "queryable")),
            _seconds(given.get("timeout", "60")),
        )

    def connect(self) -> headgate.Headgate:
        """A connection of this process."""
        return self.access.connect(self.timeout)


@dataclass(frozen=True, slots=True)
class DirectOptions:
    """Without a cluster. ``url``: of the table, with ``storage``."""

    url: str
    operation: Operation
    storage: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> DirectOptions:
        """From Spark's. Raises OptionError for one that is unknown, missing, of a cluster, or has a wrong value."""
        storage, others = storage_options(options)
        given = given_options(others, [*NAMES, *_OF_SPARK], f", and {STORAGE}KEY for settings of the storage")
        of_clusters = [name for name in given if given[name] and name not in ("path", "operation", *_OF_SPARK)]
        if of_clusters:
            raise OptionError(
                f"{' and '.join(of_clusters)}: for rows that go through a cluster, and there is no `connect`",
                fix='Leave it out, or name the cluster: .option("connect", "host:7070").',
            )
        return cls(table_named(given, 'Give its address, .save("s3://lake/orders").'), _operation(given), storage)


def sink_options(options: Mapping[str, str]) -> SinkOptions | DirectOptions:
    """Those that fit: with ``connect`` rows go through a cluster. Raises OptionError."""
    connects = in_small_letters(options).get("connect", "").strip()
    return SinkOptions.of(options) if connects else DirectOptions.of(options)


def _operation(given: Mapping[str, str]) -> Operation:
    return one_of("operation", given.get("operation", "upsert"), get_args(Operation))


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise OptionError(f"timeout={text!r} is no number of seconds", fix="Give how long a task waits: 60, say.")
    return found
