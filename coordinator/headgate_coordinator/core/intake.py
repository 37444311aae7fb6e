"""What each writer was told of how fast it may take rows, and which, and whether it has to hear something else now."""

from collections.abc import Collection, Iterable, Sequence

from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.instructions import Order, RefusedSlice, RefuseSlices, Share, Throttle
from headgate_coordinator.core.pressure import Backpressure, Pressure

FREE = Throttle()


class Intake:
    """``paused``: writers wait for the border, because the filling checkpoint is full at a bucket side or the table is handed
    over.
    """

    def __init__(self, figures: SliceFigures | None, interval: float) -> None:
        self.backpressure = Backpressure(figures, interval)
        self.paused = False
        self._told: dict[str, Throttle] = {}
        self._refused: tuple[RefusedSlice, ...] = figures.refused if figures is not None else ()
        self._told_refused: dict[str, tuple[RefusedSlice, ...]] = {}

    @property
    def pressure(self) -> Pressure:
        """What is done now."""
        return self.backpressure.pressure

    @property
    def is_open(self) -> bool:
        """Rows may be taken, however slowly."""
        return self.backpressure.pressure.stopped is None

    def share_of_next(self, before: Iterable[Checkpoint]) -> Share:
        """The share of the checkpoint that begins now; see ``Backpressure.begin_checkpoint``."""
        return self.backpressure.begin_checkpoint(before)

    def note_figures(self, figures: SliceFigures) -> None:
        """See ``Backpressure.note_figures``."""
        self.backpressure.note_figures(figures)
        self._refused = figures.refused

    def resume_if_room(self, filling: Checkpoint, behind: Sequence[Checkpoint]) -> None:
        """Figures are new: a checkpoint that took no rows may take some from now on."""
        if self.backpressure.update_pressure(behind, filling):
            filling.takes_rows = True

    def reset_writer(self, process: str) -> None:
        """It begins anew and takes rows as fast as it can, until it is told otherwise."""
        self._told.pop(process, None)
        self._told_refused.pop(process, None)

    def stop_orders(self, processes: Iterable[str]) -> list[tuple[str, Order]]:
        """Goes out before a barrier, so that no row comes behind it: the next checkpoint has no room (rule RO9)."""
        return [] if self.is_open else self.changed_orders(processes, ())

    def changed_orders(self, processes: Iterable[str], members: Collection[str]) -> list[tuple[str, Order]]:
        """Who has to hear what. ``members``: of the filling checkpoint, who share the rate."""
        orders: list[tuple[str, Order]] = []
        for process in processes:
            wanted = self._wanted(process, list(members))
            if wanted != self._told.get(process, FREE):
                self._told[process] = wanted
                orders.append((process, wanted))
            if self._refused != self._told_refused.get(process, ()):
                self._told_refused[process] = self._refused
                orders.append((process, RefuseSlices(self._refused)))
        return orders

    def _wanted(self, process: str, members: Sequence[str]) -> Throttle:
        if self.pressure.stopped is not None:
            return Throttle(stopped=self.pressure.stopped)
        if self.paused:
            return Throttle(paused=True)
        return Throttle(self.backpressure.rate_for(process, members))
