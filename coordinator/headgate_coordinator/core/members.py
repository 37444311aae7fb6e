"""The writers of one table, and their uncommitted bytes (rules RO7, RO8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate_coordinator.core.checkpoints import Checkpoint


@dataclass(slots=True)
class Writer:
    """A writer with a control stream. ``uncommitted``: Arrow bytes of its last report, less what was decided since."""

    process: str
    address: str
    leaving: bool = False
    evicted: bool = False
    uncommitted: int = 0


class Members:
    """Writers in the order in which they joined. ``attached``: processes attached in this generation."""

    def __init__(self) -> None:
        self._writers: dict[str, Writer] = {}
        self.attached: set[str] = set()

    def __contains__(self, process: object) -> bool:
        return process in self._writers

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
        return [(each.process, each.address) for each in self._writers.values() if not each.leaving]

    def note_load(self, process: str, uncommitted: int) -> None:
        """Notes a heartbeat's report. One that a decision overtook is corrected by the next."""
        if process in self._writers:
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
