"""How safe the rows of a channel are."""

from typing import Literal, NamedTuple

Level = Literal["received", "durable", "queryable"]
"""How safe rows are: in one writer's memory; their commit is decided on the table's storage; readers see them."""


class Acks(NamedTuple):
    """The offset up to which rows have reached each level. ``received`` falls back when a stream breaks."""

    received: int = 0
    durable: int = 0
    queryable: int = 0
