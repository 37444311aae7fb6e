"""Bugs that are planted into a service, one at a time, to see that the tests of exactly-once find them.

``support.stepping --plant NAME`` calls the one of that name in the service's process before it starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any


def grants_at_once() -> None:
    """The duplicate check of rule CH3 is off: a channel is granted again while rounds that hold its older rows are undecided.

    The committed offset that is answered leaves those rows out, so the client sends them a second time.
    """
    from headgate_coordinator.channels import Channels

    right = Channels.ended

    def ended(self: Channels, event: Any, *others: Any) -> Any:
        return right(self, replace(event, uncommitted=False), *others)

    Channels.ended = ended  # type: ignore[method-assign,assignment]


PLANTS: Mapping[str, Callable[[], None]] = {plant.__name__: plant for plant in (grants_at_once,)}
