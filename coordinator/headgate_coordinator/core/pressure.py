"""Backpressure: keeps slices within their limits of log files and log bytes, even without a compactor.

Each checkpoint gets a share of what is left when it begins, and keeps to it: all that may still be under way is counted before
another checkpoint takes rows. From half of a limit on, checkpoints come less often (files) and rows are taken slower (bytes).
Pure.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.instructions import Refusal, Share

LONGEST_STRETCH = 16
"""Ten seconds become 160: the age that rows reach at most before they are committed, while nothing compacts."""
_CHECKPOINTS_AHEAD = 4
"""The rest of a slice's bytes has to last for so many intervals, so the rate falls with what is left."""
_CHECKPOINTS_REMEMBERED = 8
_RESUME = 0.75
"""Part of a limit below which a stopped table goes on, so that it does not stop again with the next checkpoint."""
_FIX = "It takes them again by itself when compaction has caught up. Start compactors, or raise {key} of the table."


@dataclass(frozen=True, slots=True)
class Pressure:
    """Limits on intake. ``stretch``: how many times further apart checkpoints are. ``rate``: Arrow bytes a second that all
    writers together take; None: no limit. ``stopped``: why no rows are taken; else None.
    """

    stretch: int = 1
    rate: float | None = None
    stopped: Refusal | None = None


class Backpressure:
    """Backpressure of one table. ``figures`` None: nothing is bounded. ``interval``: seconds between checkpoints.

    After a takeover the slices may not be counted yet, which takes a listing of the table. Rows are taken meanwhile, into one
    checkpoint whose barrier waits until they are. Every owner keeps one file of the limit free for it.
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

    # Events.

    def note_figures(self, figures: SliceFigures) -> None:
        """Takes figures after a commit or a compaction: they count every published checkpoint."""
        before = self._figures
        if self._uncounted_bytes and before is not None and before.counted and figures.bytes >= before.bytes:
            self._growths.append((figures.bytes - before.bytes) / self._uncounted_bytes)
        self._figures, self._uncounted, self._uncounted_bytes = figures, Share(), 0

    def note_published(self, published: Checkpoint) -> None:
        """The checkpoint's files are in slices; figures that count them come later."""
        if published.files:
            before, own = self._uncounted, published.membership.share
            self._uncounted = Share(before.files + own.files, before.nbytes + own.nbytes)
            self._uncounted_bytes += published.bytes
            self._took = {process: published.bytes_from(process) for process in published.members}

    def begin_checkpoint(self, before: Iterable[Checkpoint]) -> Share:
        """Returns the share of a checkpoint that begins. ``before``: checkpoints whose rows may still become files."""
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
        """Updates the pressure after new figures, or when compactors come and go. Returns whether a stopped table goes on."""
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
        """Whether slices are counted, or nothing is bounded."""
        return self._figures is None or self._figures.counted

    def has_room_for(self, filling: Checkpoint) -> bool:
        """Whether the barrier may be sent. In doubt only for a checkpoint that began before the slices were counted."""
        figures = self._figures
        if figures is None or not figures.counted:
            return figures is None
        return filling.slices_were_counted or figures.files + filling.membership.share.files <= figures.max_files

    # Results.

    def rate_for(self, process: str, members: Sequence[str]) -> int:
        """Arrow bytes a second for one writer; 0: no limit. Half is shared equally, half by what writers took."""
        if self.pressure.rate is None:
            return 0
        total = sum(self._took.get(each, 0) for each in members)
        alike = 1 / max(1, len(members))
        part = (alike + self._took.get(process, 0) / total) / 2 if total else alike
        return max(1, int(float(f"{self.pressure.rate * part:.1e}")))  # two digits, so that not every checkpoint sends an order

    @property
    def alarms(self) -> list[StandingAlarm]:
        """Alarms for operators."""
        pressure, figures = self.pressure, self._figures
        if figures is None:
            return []
        if not figures.counted:
            counting = "its file slices are being counted: rows are taken, and committed afterwards"
            return [StandingAlarm(AlarmKind.SLICES_UNCOUNTED, counting)]
        if pressure.stopped is not None:
            return [StandingAlarm(AlarmKind.INTAKE_STOPPED, f"no rows are taken: {pressure.stopped.message}")]
        alarms = []
        if pressure.stretch > 1:
            text = f"checkpoints are {pressure.stretch} times further apart: {self._files(figures, Share())}{self._who()}"
            alarms.append(StandingAlarm(AlarmKind.CHECKPOINTS_STRETCHED, text))
        if pressure.rate is not None:
            text = f"rows are taken at {size(pressure.rate)}/s: {self._bytes(figures)}{self._who()}"
            alarms.append(StandingAlarm(AlarmKind.INTAKE_SLOWED, text))
        return alarms

    # Inside.

    def _pending(self, before: Iterable[Checkpoint]) -> Share:
        """What may become files and is not in the figures, as if all of it came to the fullest slice."""
        files, nbytes = self._uncounted.files, self._uncounted.nbytes
        for each in before:
            if each.takes_rows:
                files, nbytes = files + each.membership.share.files, nbytes + each.membership.share.nbytes
        return Share(files, nbytes)

    def _room(self, figures: SliceFigures, pending: Share) -> tuple[int, int]:
        """Log files left, less one for a successor; log bytes left, less an eighth, since rows are counted after they came."""
        files = figures.max_files - 1 - figures.files - pending.files
        return files, figures.max_bytes - figures.max_bytes // 8 - figures.bytes - pending.nbytes

    def _goes_on(self, figures: SliceFigures, pending: Share) -> bool:
        """Whether the table takes rows: one that is not stopped does, a stopped one well below its limits."""
        if self.pressure.stopped is None:
            return True
        return figures.files <= _RESUME * figures.max_files and figures.bytes + pending.nbytes <= _RESUME * figures.max_bytes

    def _pressure(self, figures: SliceFigures, room: int, stopped: Refusal | None) -> Pressure:
        if stopped is not None:
            return Pressure(stopped=stopped)  # rows already taken are committed without delay
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
    """Stretch by the used part of the limit of log files: 1 below half, then doubled with every further tenth, up to 16."""
    steps = int((full - 0.5) * 10 + 1e-9) + 1 if full >= 0.5 else 0
    return int(min(2**steps, LONGEST_STRETCH))


def size(nbytes: float) -> str:
    """The size as text for people."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.3g} bytes"
