"""What an owned table is set to do for its table services."""

from dataclasses import dataclass

from headgate_coordinator.core.compactions import CompactionPolicy


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """``interval``: seconds between two looks for maintenance that is due. ``compaction``: the policy of operations."""

    interval: float
    compaction: CompactionPolicy
