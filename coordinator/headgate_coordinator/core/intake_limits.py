"""Limits on the rows that writers take: how fast, and of which slices; and the orders that change them."""

from collections.abc import Collection, Iterable, Sequence

from headgate_coordinator.core.checkpoints import Checkpoint
from headgate_coordinator.core.events import SliceFigures
from headgate_coordinator.core.instructions import Order, RefusedSlice, RefuseSlices, Share, Throttle
from headgate_coordinator.core.pressure import Backpressure, Pressure

FREE = Throttle()


class IntakeLimits:
    """The limits of one table, and the last order to each writer. ``paused``: writers take no rows before the barrier, because a
    bucket side is full or the table is handed over.
    """

    def __init__(self, figures: SliceFigures | None, interval: float) -> None:
        self.backpressure = Backpressure(figures, interval)
        self.paused = False
        self._sent: dict[str, Throttle] = {}
        self._refused: tuple[RefusedSlice, ...] = figures.refused if figures is not None else ()
        self._sent_refusals: dict[str, tuple[RefusedSlice, ...]] = {}

    @property
    def pressure(self) -> Pressure:
        """The pressure on writers now."""
        return self.backpressure.pressure

    @property
    def is_open(self) -> bool:
        """Whether rows are taken, however slowly."""
        return self.backpressure.pressure.stopped is None

    def share_of_next(self, before: Iterable[Checkpoint]) -> Share:
        """Returns the share of the checkpoint that begins now; see ``Backpressure.begin_checkpoint``."""
        return self.backpressure.begin_checkpoint(before)

    def note_figures(self, figures: SliceFigures) -> None:
        """See ``Backpressure.note_figures``."""
        self.backpressure.note_figures(figures)
        self._refused = figures.refused

    def resume_if_room(self, filling: Checkpoint, behind: Sequence[Checkpoint]) -> None:
        """Lets a checkpoint that took no rows take some, if new figures leave room."""
        if self.backpressure.update_pressure(behind, filling):
            filling.takes_rows = True

    def reset_writer(self, process: str) -> None:
        """A writer that attaches takes all rows without a limit until it gets an order."""
        self._sent.pop(process, None)
        self._sent_refusals.pop(process, None)

    def stop_orders(self, processes: Iterable[str]) -> list[tuple[str, Order]]:
        """Returns orders to stop, if the next checkpoint has no room. They go out before the barrier, so no row follows it
        (RO9).
        """
        return [] if self.is_open else self.changed_orders(processes, ())

    def changed_orders(self, processes: Iterable[str], members: Collection[str]) -> list[tuple[str, Order]]:
        """Returns an order for each writer whose limits changed. ``members``: of the filling checkpoint, which share the rate."""
        orders: list[tuple[str, Order]] = []
        for process in processes:
            wanted = self._wanted(process, list(members))
            if wanted != self._sent.get(process, FREE):
                self._sent[process] = wanted
                orders.append((process, wanted))
            if self._refused != self._sent_refusals.get(process, ()):
                self._sent_refusals[process] = self._refused
                orders.append((process, RefuseSlices(self._refused)))
        return orders

    def _wanted(self, process: str, members: Sequence[str]) -> Throttle:
        if self.pressure.stopped is not None:
            return Throttle(stopped=self.pressure.stopped)
        if self.paused:
            return Throttle(paused=True)
        return Throttle(self.backpressure.rate_for(process, members))
