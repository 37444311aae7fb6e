"""What the registry knows of a channel, and the state of the table on which its answers depend."""

from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field

from headgate_coordinator.core.events import OpenRequested


@dataclass(frozen=True, slots=True)
class OpenConditions:
    """State of the table on which answers to opens depend.

    ``taking``: processes that may take channels. ``decided``: every checkpoint of this generation up to it is committed and
    published. ``blocked``: a checkpoint of an older generation is undecided, or a won one unpublished.
    """

    generation: int
    now: float
    writer_timeout: float
    taking: Container[str]
    decided: int
    blocked: bool
    draining: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A channel as slots record it."""

    incarnation: int
    committed: int
    principal: str


@dataclass(slots=True)
class Hold:
    """One writer's permission to take rows of a channel; ``ends_by``: when it has to be returned, once that was asked."""

    number: int
    process: str
    ends_by: float | None = None


@dataclass(slots=True)
class LiveChannel:
    """A channel with a hold, opens, or rows under way. ``drain``: checkpoints up to this one may have rows of ended holds;
    ``taker``: the writer that has its hold, or had the last one.
    """

    hold: Hold | None = None
    taker: str = ""
    drain: int = 0
    opens: deque[OpenRequested] = field(default_factory=deque)
