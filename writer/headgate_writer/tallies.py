"""Counts what one ingest side hands over to one bucket side in a checkpoint, at both ends in the same way (rule RO10)."""

from collections.abc import Mapping
from dataclasses import dataclass

from headgate_proto.cluster.v1 import coordination_pb2 as wire


@dataclass(slots=True)
class Tally:
    """``checksum``: uint64, over the checksums of the frames in their order; 0 where none travels."""

    rows: int = 0
    checksum: int = 0

    def add(self, rows: int, checksum: int = 0) -> None:
        """Counts the rows of a frame, or of a batch that stays in the process and has no checksum."""
        self.rows += rows
        self.checksum = (self.checksum * _ODD + checksum) & _MASK


_ODD = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def tally_messages(tallies: Mapping[str, Tally]) -> list[wire.Tally]:
    """By process of the other end."""
    return [wire.Tally(process=process, rows=tally.rows, checksum=tally.checksum) for process, tally in tallies.items()]
