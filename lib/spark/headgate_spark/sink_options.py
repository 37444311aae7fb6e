"""The options of ``df.write.format("headgate")`` and ``df.writeStream.format("headgate")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, get_args

import headgate
from headgate.acks import Level
from headgate_spark import cluster_access
from headgate_spark.cluster_access import ClusterAccess
from headgate_spark.given import given_options
from headgate_tables.errors import OptionError

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


_NEEDED: Final = {
    "path": 'Name the table: .save("orders").',
    "connect": 'Rows go through a cluster: .option("connect", "host:7070"). Without one: headgate_spark.upsert or bulk_insert.',
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
