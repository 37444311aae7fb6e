"""Alarms that stand: what is wrong now, for `headgate status` and for the metric ``headgate_alarm``. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class AlarmKind(StrEnum):
    """Values of the metric's label ``kind``. Alert rules and the manual name them, so a kind keeps its value."""

    NO_WRITER = "no_writer"
    CHECKPOINTS_ABORTED = "checkpoints_aborted"
    WRITER_EXCLUDED = "writer_excluded"
    SLICES_UNCOUNTED = "slices_uncounted"
    CHECKPOINTS_STRETCHED = "checkpoints_stretched"
    INTAKE_SLOWED = "intake_slowed"
    INTAKE_STOPPED = "intake_stopped"
    STORE_DENIED = "store_denied"
    STORE_FULL = "store_full"
    STORE_SILENT = "store_silent"
    STORE_FAILED = "store_failed"
    FOLDER_GONE = "folder_gone"
    CLOCK = "clock"
    FUTURE_TIMES = "future_times"
    QUARANTINED = "quarantined"
    NOT_SERVED = "not_served"
    NOT_MAINTAINED = "not_maintained"
    SLICE_STUCK = "slice_stuck"
    SLICE_SET_ASIDE = "slice_set_aside"
    NO_COMPACTOR = "no_compactor"
    COMPACTION_RETRIED = "compaction_retried"
    COMPACTION_REFUSED = "compaction_refused"


@dataclass(frozen=True, slots=True)
class StandingAlarm:
    """``text``: a sentence that says what is wrong, where, and what is done about it."""

    kind: AlarmKind
    text: str
