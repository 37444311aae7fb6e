"""Bugs and burdens that are planted into a service, one at a time: what tests have to find, or to bear.

``support.stepping --plant NAME`` calls the one of that name in the service's process before it starts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any


def grants_at_once() -> None:
    """The duplicate check of rule CH3 is off: a channel is granted again while checkpoints that hold its older rows are
    undecided.

    The committed offset that is answered leaves those rows out, so the client sends them a second time.
    """
    from headgate_coordinator.core.channels import ChannelRegistry

    right = ChannelRegistry.end_hold

    def ended(self: ChannelRegistry, event: Any, *others: Any) -> Any:
        return right(self, replace(event, uncommitted=False), *others)

    ChannelRegistry.end_hold = ended  # type: ignore[method-assign,assignment]


def encodes_slowly() -> None:
    """Each writer writes 5,000 rows a second: far less than clients send."""
    from headgate_tables.hudi.changes import ChangeWriter

    right = ChangeWriter._encode

    def encode(self: ChangeWriter, file: Any) -> Any:
        time.sleep(file.batch.deletes.size / 5000)
        return right(self, file)

    ChangeWriter._encode = encode  # type: ignore[method-assign]


PLANTS: Mapping[str, Callable[[], None]] = {plant.__name__: plant for plant in (grants_at_once, encodes_slowly)}
