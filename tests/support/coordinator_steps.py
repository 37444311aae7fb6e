"""The named steps of a coordinator (docs/protocol/crashes.md), seen from outside.

Within ``reported_steps`` the classes of the service are replaced by ones that report each step; production has no such code.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction, Membership
from headgate_coordinator.core.table_coordinator import TableCoordinator
from headgate_coordinator.streams.stream import Stream
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.part_reader import PartReader
from headgate_tables.commitlog.bodies import SlotKind
from headgate_tables.hudi import Table, open_table
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Buffers, FolderListing, Outcome, Spool, Store
from headgate_tables.system import System
from support.handles import open_on

Reached = Callable[[str], None]

_SLOT_STEPS = {SlotKind.COMMIT: "slot", SlotKind.FENCE: "fence", SlotKind.DEAD: "dead", SlotKind.OFFSETS: "incarnation_slot"} | {
    SlotKind.CONFIG: "config_slot",
    SlotKind.PLAN: "plan",
    SlotKind.PLAN_DONE: "plan_done",
    SlotKind.DROP: "drop",
    SlotKind.GRACE: "grace",
    SlotKind.ALTER: "alter",
    SlotKind.RESTORE: "restore",
}
_OURS = ".hoodie/.headgate/"
_SHOWN_BEFORE = (".requested", ".inflight")


@contextmanager
def reported_steps(reached: Reached) -> Iterator[None]:
    """Coordinators of this process, however many, call ``reached`` with the name of each step, from several threads."""
    with (
        patch("headgate_coordinator.leadership.ownerships.TableCoordinator", partial(SteppedCoordinator, reached)),
        patch("headgate_coordinator.services.coordination_service.Stream", partial(SteppedStream, reached)),
        patch("headgate_coordinator.tables.storage.open_table", partial(_open_stepped, reached)),
    ):
        yield


def _open_stepped(
    reached: Reached, url: str, *, storage_options: Mapping[str, str] | None, system: System, **options: Any
) -> Table:
    """The table; the handle of an owner, which names itself, goes through a ``SteppedStore``."""
    if "owner" not in options:
        return open_table(url, storage_options=storage_options, system=system)
    store = SteppedStore(open_store(url, storage_options, system.ids, anchor=LOG_LAYOUT.root), reached)
    return open_on(store, system, **options)


class SteppedCoordinator(TableCoordinator):
    """A table's core that reports what it hears and, as each of its instructions is about to be executed, what it wants."""

    def __init__(self, reached: Reached, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._steps = CheckpointSteps(reached)

    def handle_event(self, event: Event, now: float) -> list[Instruction]:
        self._steps.before_event(event)
        return _Watched(super().handle_event(event, now), self._steps.before_instruction)


class _Watched(list[Instruction]):
    """``watch`` is called with each instruction just before a loop gets it."""

    def __init__(self, instructions: Iterable[Instruction], watch: Callable[[Instruction], None]) -> None:
        super().__init__(instructions)
        self._watch = watch

    def __iter__(self) -> Iterator[Instruction]:
        for instruction in super().__iter__():
            self._watch(instruction)
            yield instruction


class SteppedStream(Stream[wire.ControlRequest, wire.ControlResponse]):
    """A writer's control stream that reports barriers and acknowledgements once gRPC has taken them."""

    def __init__(self, reached: Reached, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._reached = reached

    async def serve(self, requests: PartReader[wire.ControlRequest], context: Any, welcome: wire.ControlResponse) -> str:
        return await super().serve(requests, cast(Any, _SteppedContext(context, self._reached)), welcome)


class _SteppedContext:
    """What ``Stream`` uses of a call's context."""

    def __init__(self, context: Any, reached: Reached) -> None:
        self._context = context
        self._reached = reached

    async def write(self, message: wire.ControlResponse) -> None:
        await self._context.write(message)
        match message.table.WhichOneof("message"):
            case "barrier":
                self._reached("barrier_sent")
            case "decided":
                self._reached("acks_sent")
            case _:
                pass


class CheckpointSteps:
    """Steps of one table's checkpoints, seen in its core's events and instructions."""

    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._membership: Membership | None = None
        self._members: dict[tuple[int, int], set[str]] = {}
        self._passed: dict[tuple[int, int], set[str]] = {}

    def before_event(self, event: Event) -> None:
        """Before the core handles it."""
        if isinstance(event, events.BarrierPassed):
            key = (event.generation, event.checkpoint)
            passed = self._passed.setdefault(key, set())
            passed.add(event.process)
            if len(passed) == 1:
                self._reached("first_barrier_in")
            if passed == self._members.get(key):
                self._reached("last_barrier_in")

    def before_instruction(self, instruction: Instruction) -> None:
        """Before it is executed."""
        match instruction:
            case instructions.IssueInstant():
                self._reached("filling_begun")
            case instructions.CommitCheckpoint(files=[_, *_]):
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
    """A store that reports the steps inside the table library; otherwise the store that it wraps."""

    def __init__(self, store: Store, reached: Reached) -> None:
        self._store = store
        self._reached = reached
        self._dropped = False

    def create(self, path: str, content: Buffers, *, durable: bool) -> Outcome:
        """Slots by their kind, files that a slot derives, folds."""
        step = _slot_step(path, content)
        if step:
            self._reached(f"{step}_sent")
        outcome = self._store.create(path, content, durable=durable)
        if step and outcome is Outcome.CREATED:
            self._dropped = self._dropped or step == _SLOT_STEPS[SlotKind.DROP]
            self._reached(f"{step}_won")
        if path == LOG_LAYOUT.tombstone:
            self._reached("tombstone_made")
        self._created(path)
        return outcome

    def link_all(self, names: Iterable[tuple[str, str]]) -> list[Outcome | None]:
        """Data files are put in place."""
        outcomes: list[Outcome | None] = []
        for pair in names:
            outcomes += self._store.link_all([pair])
            self._reached("derived_file")
        return outcomes

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

    def list_folder(self, folder: str, *, after: str | None = None, sizes: bool = False) -> FolderListing:
        return self._store.list_folder(folder, after=after, sizes=sizes)

    def create_all(self, files: Sequence[tuple[str, Buffers]], *, durable: bool) -> list[Outcome]:
        return self._store.create_all(files, durable=durable)

    def stage(self, files: Sequence[tuple[str, Buffers]]) -> None:
        self._store.stage(files)

    def spool(self, path: str, staged: str) -> AbstractContextManager[Spool]:
        return self._store.spool(path, staged)

    def replace(self, path: str, content: Buffers) -> None:
        self._store.replace(path, content)

    def copy(self, source: str, path: str) -> None:
        self._store.copy(source, path)

    def sync(self, paths: Iterable[str], folders: Iterable[str]) -> None:
        self._store.sync(paths, folders)

    def delete(self, paths: Iterable[str]) -> None:
        """Files of a dropped table, one by one."""
        for path in paths:
            self._store.delete([path])
            if self._dropped:
                self._reached("dropped_file")

    def delete_folder(self, folder: str) -> None:
        self._store.delete_folder(folder)
        if self._dropped:
            self._reached("log_removed" if folder in (LOG_LAYOUT.folder, LOG_LAYOUT.removed_folder) else "dropped_folder")

    def delete_empty(self, folder: str) -> None:
        self._store.delete_empty(folder)

    def rename_folder(self, source: str, target: str) -> None:
        self._store.rename_folder(source, target)


def _slot_step(path: str, content: Buffers) -> str:
    if not path.startswith(LOG_LAYOUT.slots):
        return ""
    data = b"".join(_bytes(piece) for piece in content)
    return next((step for kind, step in _SLOT_STEPS.items() if b'"kind":"%s"' % kind.encode() in data), "")


def _bytes(piece: Any) -> bytes:
    return piece.to_pybytes() if isinstance(piece, pa.Buffer) else bytes(piece)
