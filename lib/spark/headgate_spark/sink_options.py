"""The options of ``df.write.format("headgate")`` and ``df.writeStream.format("headgate")``: with ``connect``, and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from headgate_spark import cluster_access
from headgate_spark.cluster_access import ClusterAccess
from headgate_spark.given import STORAGE, given_options, storage_options
from headgate_tables.errors import OptionError

if TYPE_CHECKING:
    import headgate
    from headgate.acks import Level

NAMES: Final = ("path", "channel", "operation", "level", "timeout", *cluster_access.NAMES)
_OF_SPARK: Final = "checkpointLocation"
"""Spark hands on what is for itself, too."""
Operation = Literal["upsert", "delete"]
_T = TypeVar("_T", bound=str)


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
        given = given_options(options, [*NAMES, _OF_SPARK])
        for name, fix in _NEEDED.items():
            if not given.get(name):
                raise OptionError(f"there is no {name!r}", fix=fix)
        return cls(
            given["path"],
            ClusterAccess.of(given),
            given["channel"],
            _one_of("operation", given.get("operation", "upsert"), get_args(Operation)),
            _one_of("level", given.get("level", "queryable"), ("durable", "queryable")),
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
        given = given_options(others, [*NAMES, _OF_SPARK], f", and {STORAGE}KEY for settings of the storage")
        of_clusters = [name for name in given if given[name] and name not in ("path", "operation", _OF_SPARK)]
        if of_clusters:
            raise OptionError(
                f"{' and '.join(of_clusters)}: for rows that go through a cluster, and there is no `connect`",
                fix='Leave it out, or name the cluster: .option("connect", "host:7070").',
            )
        if not given.get("path"):
            raise OptionError("no table is named", fix='Give its address, .save("s3://lake/orders").')
        return cls(given["path"], _one_of("operation", given.get("operation", "upsert"), get_args(Operation)), storage)


def sink_options(options: Mapping[str, str]) -> SinkOptions | DirectOptions:
    """Those that fit: with ``connect`` rows go through a cluster. Raises OptionError."""
    connects = any(name.lower() == "connect" and value.strip() for name, value in options.items())
    return SinkOptions.of(options) if connects else DirectOptions.of(options)


_NEEDED: Final = {
    "path": 'Name the table: .save("orders").',
    "channel": 'Name what the channels begin with: .option("channel", "orders"). Jobs that run at once need different names.',
}


def _one_of(name: str, text: str, values: tuple[_T, ...]) -> _T:
    for value in values:
        if text == value:
            return value
    raise OptionError(f"{name}={text!r}", fix=f"Give one of {', '.join(values)}.")


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise OptionError(f"timeout={text!r} is no number of seconds", fix="Give how long a task waits: 60, say.")
    return found
