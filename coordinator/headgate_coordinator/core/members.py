"""The writers of one table, and their uncommitted bytes (rules RO7, RO8, RO13)."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.checkpoints import Checkpoint


@dataclass(slots=True)
class Writer:
    """A writer with a control stream. ``uncommitted``: Arrow bytes of its last report, less what was decided since."""

    process: str
    address: str
    leaving: bool = False
    evicted: bool = False
    uncommitted: int = 0


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a process has no part in the table. ``until``: monotonic seconds; None: until it restarts."""

    why: str
    until: float | None = None


class Members:
    """Writers in the order in which they joined. ``attached``: processes attached in this generation."""

    def __init__(self) -> None:
        self._writers: dict[str, Writer] = {}
        self._excluded: dict[str, Exclusion] = {}
        self.attached: set[str] = set()

    def __contains__(self, process: object) -> bool:
        return process in self._writers

    def takes_part(self, process: str) -> bool:
        """Whether the process is a writer whose reports count."""
        return process in self._writers and process not in self._excluded

    def add_member(self, process: str, address: str) -> list[str]:
        """Adds a writer. Returns processes that had its address: they are dead even if their streams have not ended (rule
        RO8).
        """
        writers = self._writers.values()
        before = [each.process for each in writers if each.address == address and each.process != process and not each.evicted]
        for other in before:
            self._writers[other].evicted = True
        self._writers[process] = Writer(process, address)
        return before

    def exclude(self, process: str, why: str, until: float | None = None) -> None:
        """The process has no part in the table any more, also on another stream (rules RO10, RO11, RO13)."""
        self._excluded[process] = Exclusion(why, until)

    def readmit(self, now: float = math.inf) -> list[str]:
        """Returns whose exclusion ended before ``now``: they have a part from the next checkpoint on. By default each that would
        end without a restart does.
        """
        over = [process for process, each in self._excluded.items() if each.until is not None and each.until <= now]
        for process in over:
            del self._excluded[process]
        return over

    @property
    def paused(self) -> list[str]:
        """Writers that are excluded for a while."""
        return [process for process, each in self._excluded.items() if process in self._writers and each.until is not None]

    @property
    def readmission_at(self) -> float | None:
        """When the next of them has a part again; None: there is none."""
        return min((self._excluded[process].until or 0.0 for process in self.paused), default=None)

    @property
    def excluded(self) -> Collection[str]:
        """Processes that were excluded, also those that are gone."""
        return self._excluded.keys()

    def alarms(self, now: float) -> list[StandingAlarm]:
        """Alarms for operators."""
        texts = []
        for process, each in self._excluded.items():
            if process in self._writers:
                span = "" if each.until is None else f"for {each.until - now:.0f} s more, or "
                address = self._writers[process].address
                texts.append(f"writer {process} at {address} is excluded {span}until it restarts: {each.why}")
        return [StandingAlarm(AlarmKind.WRITER_EXCLUDED, text) for text in texts]

    def attach(self, process: str) -> None:
        """The writer is attached. Nothing depends on one that is excluded, so its loss aborts nothing."""
        if process not in self._excluded:
            self.attached.add(process)

    def remove_member(self, process: str) -> None:
        """Removes a writer that was lost or detached."""
        self._writers.pop(process, None)

    def mark_leaving(self, process: str) -> None:
        """The writer takes no part in checkpoints after the next border."""
        if process in self._writers:
            self._writers[process].leaving = True

    def mark_evicted(self, process: str) -> bool:
        """Returns whether its stream has to be cut now; True only once."""
        writer = self._writers.get(process)
        first = writer is not None and not writer.evicted
        if writer is not None:
            writer.evicted = True
        return first

    @property
    def processes(self) -> list[str]:
        """Every process, including those that leave."""
        return list(self._writers)

    @property
    def leaving_processes(self) -> list[str]:
        """Processes that drain."""
        return [each.process for each in self._writers.values() if each.leaving]

    @property
    def staying_members(self) -> list[tuple[str, str]]:
        """Process and address of each member of the next checkpoint."""
        writers = self._writers.values()
        return [(each.process, each.address) for each in writers if not (each.leaving or each.process in self._excluded)]

    def note_load(self, process: str, uncommitted: int) -> None:
        """Notes a heartbeat's report. One that a decision overtook is corrected by the next."""
        if self.takes_part(process):
            self._writers[process].uncommitted = uncommitted

    def subtract_committed(self, decided: Checkpoint) -> None:
        """Subtracts what the checkpoint committed, before writers report it."""
        for writer in self._writers.values():
            writer.uncommitted = max(0, writer.uncommitted - decided.bytes_from(writer.process))

    def drop_uncommitted(self) -> None:
        """A new generation drops all uncommitted rows."""
        for writer in self._writers.values():
            writer.uncommitted = 0

    def uncommitted_bytes(self, flushing: Checkpoint | None) -> Sequence[int]:
        """Uncommitted Arrow bytes by writer, without those of the flushing checkpoint."""
        writers = self._writers.values()
        return [max(0, each.uncommitted - (flushing.bytes_from(each.process) if flushing else 0)) for each in writers]
