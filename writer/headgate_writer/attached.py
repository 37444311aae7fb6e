"""A table as its owner has attached it: one (epoch, generation), and the membership of each checkpoint."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headgate_tables.face.definition import Definition
from headgate_tables.face.settings import BlockFormat
from headgate_tables.storage.store import Store

KeyGroupTable: TypeAlias = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Member:
    """A writer of a checkpoint: its process id (rule RO8) and host:port."""

    process: str
    address: str


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """The members of ``checkpoint``, and its shares. ``assignment``: uint16[key groups], each an index into ``members``; empty
    without members.

    ``block_format``: of its log files. ``slice_files``, ``slice_bytes``: how much the checkpoint may add to one file slice.
    ``intake_bytes``: how much each ingest side takes into it. 0: not bounded.
    """

    checkpoint: int
    members: tuple[Member, ...]
    assignment: KeyGroupTable
    block_format: BlockFormat
    slice_files: int = 0
    slice_bytes: int = 0
    intake_bytes: int = 0

    def index(self, process: str) -> int | None:
        """Returns the index of the member with that process id, None if it has no part in the checkpoint."""
        return next((at for at, member in enumerate(self.members) if member.process == process), None)


@dataclass(frozen=True, slots=True, eq=False)
class AttachedTable:
    """A table under one ownership and generation (rule RO2). ``store``: the table's folder; ``url``: where it is.

    ``restored``: the instant of the table's newest restore, for clients (rule CH8).
    """

    name: str
    epoch: int
    generation: int
    url: str
    definition: Definition
    store: Store
    restored: str = ""
