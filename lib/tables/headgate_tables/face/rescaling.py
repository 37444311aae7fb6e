"""What a rescale is made of: units that need nothing of each other, so that any process may rewrite any of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from headgate_tables.commitlog.fields import Json, json_list, number, text
from headgate_tables.face.definition import Definition
from headgate_tables.face.files import WriteStatus
from headgate_tables.face.operation import Operation
from headgate_tables.face.results import RescaleResult


@dataclass(frozen=True, slots=True)
class RescaleUnit:
    """Slices of one partition, and the new buckets that their rows go to: all are ``residue`` modulo ``divisor``."""

    partition: str
    slices: Sequence[Operation]
    buckets: range
    divisor: int

    @property
    def residue(self) -> int:
        """What all buckets, old and new, are modulo the divisor."""
        return self.buckets.start % self.divisor

    @property
    def input_bytes(self) -> int:
        """Bytes of all slices."""
        return sum(each.input_bytes for each in self.slices)

    @property
    def digest(self) -> str:
        """Of the slices and the buckets: what its files are made of."""
        return hashlib.sha256(self.encode().encode()).hexdigest()

    def encode(self) -> str:
        """As JSON."""
        buckets: list[Json] = [self.buckets.start, self.buckets.stop, self.buckets.step]
        return json.dumps([self.partition, [each.encode() for each in self.slices], buckets, self.divisor])

    @classmethod
    def decode(cls, content: str) -> RescaleUnit:
        """What ``encode`` gave."""
        partition, slices, buckets, divisor = json_list(json.loads(content))
        operations = [Operation.decode(each) for each in json_list(slices)]
        return cls(text(partition), operations, range(*map(number, json_list(buckets))), number(divisor))


@dataclass(frozen=True, slots=True)
class RescaleJob:
    """What all units of a rescale have in common. ``target``: the definition from then on; ``stage``: the folder in which files
    wait for the commit, "" where they are created in place; ``settings``: the table's, as text by key.
    """

    definition: Definition
    target: Definition
    instant: str
    stage: str
    settings: Mapping[str, str]


RescaleProgress: TypeAlias = Callable[[int, int], None]
"""Gets how many rows were written so far, and the bytes of the slices that are done with."""
RunUnits: TypeAlias = Callable[[RescaleJob, Sequence[RescaleUnit]], Iterable[Sequence[WriteStatus]]]
"""Rewrites all units, in any order and in any process (``headgate_tables.writing.rescale_unit``), and returns their files."""


class RescaleCalls(Protocol):
    """A table, to who rescales it."""

    def rescale(
        self,
        buckets: int,
        *,
        partitions: str = "",
        plan_only: bool = False,
        progress: RescaleProgress = ...,
        run: RunUnits | None = None,
        planned: RescaleResult | None = None,
    ) -> RescaleResult:
        """Gives partitions another number of buckets. ``run``: has other processes do the work. ``planned``: what a call with
        ``plan_only`` has returned a moment ago.
        """
