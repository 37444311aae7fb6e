"""What one end of a pair of writers counted of the rows between them (rule RO10). Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows of a checkpoint between one ingest side and one bucket side, as one of them counted; ``checksum``: of the frames."""

    rows: int = 0
    checksum: int = 0
