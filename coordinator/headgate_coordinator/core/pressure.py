"""How much a slice may still grow, and what is done so that it never grows further.

Log files and log bytes of a slice have limits that nothing may pass, also with all compactors gone. So each checkpoint gets a
share of what is left when it begins, and keeps to it: all that may still be on its way is counted before a further checkpoint
takes rows. On the way there, from half of a limit on, checkpoints come less often (files) and rows are taken slower (bytes).
Pure.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.instructions import Refusal, Share

LONGEST_STRETCH = 16
"""Ten seconds become 160: rows are that old at most before they are committed, while nothing compacts."""
_CHECKPOINTS_AHEAD = 4
"""Rows are taken so slowly that the rest of a slice's bytes lasts for so many intervals; so the rate falls with what is left."""
_CHECKPOINTS_REMEMBERED = 8
_RESUME = 0.75
"""Of a limit: below it a stopped table goes on, so that it does not stop again with the next checkpoint."""
_FIX = "It takes them again by itself when compaction has caught up. Start compactors, or raise {key} of the table."


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is done. ``stretch``: how many times longer checkpoints are apart. ``rate``: Arrow bytes a second that all writers
    together take; None: as fast as they can. ``stopped``: why none are taken; else None.
    """

    stretch: int = 1
    rate: float | None = None
    stopped: Refusal | None = None


class Backpressure:
    """One table's. ``figures`` None: nothing is bounded. ``interval``: seconds between checkpoints.

    After a takeover the slices may not be counted yet, which takes a listing of the table. Rows are taken meanwhile, into one
    checkpoint that waits with its barrier until they are. For its file one file of the limit is kept free by every owner.
    """

    def __init__(self, figures: SliceFigures | None, interval: float) -> None:
        self.pressure = Pressure()
        self.compactors: int | None = None
        self._figures = figures
        self._interval = interval
        self._uncounted = Share()
        self._uncounted_bytes = 0
        self._growths: deque[float] = deque(maxlen=_CHECKPOINTS_REMEMBERED)
        self._took: Mapping[str, int] = {}

    # What happens.

    def note_figures(self, figures: SliceFigures) -> None:
        """After a commit or a compaction: everything that was ``published`` is in these figures."""
        before = self._figures
        if self._uncounted_bytes and before is not None and before.counted and figures.bytes >= before.bytes:
            self._growths.append((figures.bytes - before.bytes) / self._uncounted_bytes)
        self._figures, self._uncounted, self._uncounted_bytes = figures, Share(), 0

    def note_published(self, published: Checkpoint) -> None:
        """Its files are in slices; which figures come of it is not known yet."""
        if published.files:
            before, own = self._uncounted, published.membership.share
            self._uncounted = Share(before.files + own.files, before.nbytes + own.nbytes)
            self._uncounted_bytes += published.bytes
            self._took = {process: published.bytes_from(process) for process in published.members}

    def begin_checkpoint(self, before: Iterable[Checkpoint]) -> Share:
        """A checkpoint begins to take rows, or none if there is no room; ``before``: checkpoints whose rows may still become
        files.
        """
        figures = self._figures
        if figures is None:
            return Share()
        least = Share(1, max(1, figures.max_bytes // 32))
        if not figures.counted:
            return least
        pending = self._pending(before)
        files, nbytes = self._room(figures, pending)
        stopped = files < 1 or nbytes <= 0 or not self._goes_on(figures, pending)
        self.pressure = self._pressure(figures, nbytes, self._stopped_by(figures, pending, files) if stopped else None)
        return Share(max(least.files, files // 8), max(least.nbytes, nbytes // 4))

    def update_pressure(self, behind: Iterable[Checkpoint], filling: Checkpoint) -> bool:
        """After ``counted``, or when compactors come and go. Whether a table that was stopped goes on."""
        figures = self._figures
        if figures is None or not figures.counted:
            return False
        pending = self._pending([*behind, filling])
        more = Share() if filling.takes_rows else filling.membership.share
        files, nbytes = self._room(figures, pending)
        was_stopped = self.pressure.stopped is not None
        goes_on = self._goes_on(figures, pending) and files >= more.files and nbytes >= more.nbytes
        stopped = not goes_on if was_stopped else not self.has_room_for(filling)
        self.pressure = self._pressure(figures, nbytes, self._stopped_by(figures, pending, files) if stopped else None)
        return was_stopped and not stopped

    @property
    def is_counted(self) -> bool:
        """How full slices are is known, or does not matter."""
        return self._figures is None or self._figures.counted

    def has_room_for(self, filling: Checkpoint) -> bool:
        """Whether its barrier may be sent. Only of a checkpoint that began before the slices were counted this is not known
        before.
        """
        figures = self._figures
        if figures is None or not figures.counted:
            return figures is None
        return filling.slices_were_counted or figures.files + filling.membership.share.files <= figures.max_files

    # What follows.

    def rate_for(self, process: str, members: Sequence[str]) -> int:
        """Arrow bytes a second for one of the writers; 0: no limit. Half is for all alike, half goes by what they took."""
        if self.pressure.rate is None:
            return 0
        total = sum(self._took.get(each, 0) for each in members)
        alike = 1 / max(1, len(members))
        part = (alike + self._took.get(process, 0) / total) / 2 if total else alike
        return max(1, int(float(f"{self.pressure.rate * part:.1e}")))  # two digits: not each checkpoint is worth an order

    @property
    def alarms(self) -> list[str]:
        """What an operator should know."""
        pressure, figures = self.pressure, self._figures
        if figures is None:
            return []
        if not figures.counted:
            return ["its file slices are being counted: rows are taken, and committed after that"]
        if pressure.stopped is not None:
            return [f"no rows are taken: {pressure.stopped.message}"]
        alarms = []
        if pressure.stretch > 1:
            alarms.append(f"checkpoints are {pressure.stretch} times further apart: {self._files(figures, Share())}{self._who()}")
        if pressure.rate is not None:
            alarms.append(f"rows are taken at {size(pressure.rate)}/s: {self._bytes(figures)}{self._who()}")
        return alarms

    # Inside.

    def _pending(self, before: Iterable[Checkpoint]) -> Share:
        """What is not in the figures and may become files. The fullest slice gets the most of each: never too little."""
        files, nbytes = self._uncounted.files, self._uncounted.nbytes
        for each in before:
            if each.takes_rows:
                files, nbytes = files + each.membership.share.files, nbytes + each.membership.share.nbytes
        return Share(files, nbytes)

    def _room(self, figures: SliceFigures, pending: Share) -> tuple[int, int]:
        """Log files, without that of a successor; log bytes, without an eighth: rows are counted behind their coming."""
        files = figures.max_files - 1 - figures.files - pending.files
        return files, figures.max_bytes - figures.max_bytes // 8 - figures.bytes - pending.nbytes

    def _goes_on(self, figures: SliceFigures, pending: Share) -> bool:
        """Whether a table that is stopped need not be; one that is not may go on in any case."""
        if self.pressure.stopped is None:
            return True
        return figures.files <= _RESUME * figures.max_files and figures.bytes + pending.nbytes <= _RESUME * figures.max_bytes

    def _pressure(self, figures: SliceFigures, room: int, stopped: Refusal | None) -> Pressure:
        if stopped is not None:
            return Pressure(stopped=stopped)  # what was taken is committed without delay; nothing follows it
        stretch = stretch_of(figures.files / figures.max_files)
        rate = None
        growth = max(self._growths, default=1.0)
        if 2 * figures.bytes >= figures.max_bytes and growth > 0:
            left = max(room, figures.max_bytes // 16)
            rate = left / (_CHECKPOINTS_AHEAD * self._interval * stretch * growth)
        return Pressure(stretch, rate)

    def _stopped_by(self, figures: SliceFigures, pending: Share, room: int) -> Refusal:
        full = room < 1 or figures.files > _RESUME * figures.max_files
        what = self._files(figures, pending) if full else self._bytes(figures)
        key = "headgate.slice.max.log.files" if full else "headgate.slice.max.log.bytes"
        return Refusal("CODE_OVERLOADED", f"{what}{self._who()}", _FIX.format(key=key))

    def _files(self, figures: SliceFigures, pending: Share) -> str:
        coming = f" and up to {pending.files} more are on their way" if pending.files else ""
        return f"{figures.files} log files of one slice wait for compaction{coming}, the limit is {figures.max_files}"

    def _bytes(self, figures: SliceFigures) -> str:
        return f"{size(figures.bytes)} of log files of one slice wait for compaction, the limit is {size(figures.max_bytes)}"

    def _who(self) -> str:
        if self.compactors is None:
            return ""
        return f"; {self.compactors or 'no'} compactor{' is' if self.compactors < 2 else 's are'} connected"


def stretch_of(full: float) -> int:
    """By the share of the limit of log files: 1 below half, then twice as much with every further tenth, up to 16."""
    steps = int((full - 0.5) * 10 + 1e-9) + 1 if full >= 0.5 else 0
    return int(min(2**steps, LONGEST_STRETCH))


def size(nbytes: float) -> str:
    """For people."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.3g} bytes"
