"""Where tests kill a coordinator: its steps of docs/protocol/crashes.md, told to ``World.reached`` by name.

Production has no ``reached``; then none of this is made.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction, Membership
from headgate_tables.commitlog.slot import Kind
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.store import Buffers, Listing, Outcome, Spool, Store

Reached = Callable[[str], None]

_SLOT_STEPS = {Kind.COMMIT: "slot", Kind.FENCE: "fence", Kind.DEAD: "dead", Kind.OFFSETS: "incarnation_slot"} | {
    Kind.PLAN: "plan",
    Kind.PLAN_DONE: "plan_done",
}
_OURS = ".hoodie/.headgate/"
_SHOWN_BEFORE = (".requested", ".inflight")


class CheckpointSteps:
    """Steps of one table's checkpoints, seen from what its core is told and what it says."""

    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._membership: Membership | None = None
        self._members: dict[tuple[int, int], set[str]] = {}
        self._passed: dict[tuple[int, int], set[str]] = {}

    def told(self, event: Event) -> None:
        """Before the core sees it."""
        if isinstance(event, events.BarrierPassed):
            key = (event.generation, event.checkpoint)
            passed = self._passed.setdefault(key, set())
            passed.add(event.process)
            if len(passed) == 1:
                self._reached("first_barrier_in")
            if passed == self._members.get(key):
                self._reached("last_barrier_in")

    def says(self, instruction: Instruction) -> None:
        """Before it is executed."""
        match instruction:
            case instructions.IssueInstant():
                self._reached("filling_begun")
            case instructions.Commit(files=[_, *_]):
                self._reached("all_statuses_in")
            case instructions.Send(_, generation, instructions.Attach(membership) | instructions.Barrier(_, membership)):
                self._member_of(generation, membership)
            case _:
                pass

    def _member_of(self, generation: int, membership: Membership) -> None:
        self._members[generation, membership.checkpoint] = {process for process, _ in membership.members}
        if (
            self._membership is not None
            and self._membership.checkpoint < membership.checkpoint
            and _places(self._membership) != _places(membership)
        ):
            self._reached("border_with_move")
        self._membership = membership


def _places(membership: Membership) -> Sequence[str]:
    return [membership.members[index][0] for index in membership.assignment]


class SteppedStore:
    """A store that tells of the steps that lie inside the table library; otherwise the store that it wraps."""

    def __init__(self, store: Store, reached: Reached) -> None:
        self._store = store
        self._reached = reached

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        """Slots by their kind, files that a slot derives, folds."""
        step = _slot_step(path, content)
        if step:
            self._reached(f"{step}_sent")
        outcome = self._store.create(path, content, durable=durable)
        if step and outcome is Outcome.CREATED:
            self._reached(f"{step}_won")
        self._created(path)
        return outcome

    def link(self, source: str, target: str) -> Outcome:
        """A data file is put in place."""
        outcome = self._store.link(source, target)
        self._reached("derived_file")
        return outcome

    def _created(self, path: str) -> None:
        if path.startswith(LOG_LAYOUT.folds):
            self._reached("fold_written")
        elif not path.startswith(_OURS) and not path.endswith(_SHOWN_BEFORE):
            self._reached("derived_file")

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def stages(self) -> bool:
        return self._store.stages

    def get(self, path: str) -> pa.Buffer:
        return self._store.get(path)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._store.open_input(path)

    def size(self, path: str) -> int | None:
        return self._store.size(path)

    def version(self, path: str) -> str | None:
        return self._store.version(path)

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> Listing:
        return self._store.list_folder(folder, after=after, sizes=sizes)

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        return self._store.create_all(files, durable=durable)

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        self._store.stage(files)

    def spool(self, path: str, staged: str) -> AbstractContextManager[Spool]:
        return self._store.spool(path, staged)

    def replace(self, path: str, content: Buffers) -> None:
        self._store.replace(path, content)

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        self._store.sync(paths, folders)

    def delete(self, paths: Iterable[str]) -> None:
        self._store.delete(paths)

    def delete_folder(self, folder: str) -> None:
        self._store.delete_folder(folder)

    def rename_folder(self, source: str, target: str) -> None:
        self._store.rename_folder(source, target)


def _slot_step(path: str, content: Buffers) -> str:
    if not path.startswith(LOG_LAYOUT.slots):
        return ""
    data = b"".join(_bytes(piece) for piece in content)
    return next((step for kind, step in _SLOT_STEPS.items() if b'"kind":"%s"' % kind.encode() in data), "")


def _bytes(piece: Any) -> bytes:
    return piece.to_pybytes() if isinstance(piece, pa.Buffer) else bytes(piece)
