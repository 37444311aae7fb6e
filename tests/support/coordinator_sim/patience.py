"""What an owner must not do too soon, or give up: written from the rules, without a look at how the coordinator decides."""

from headgate_coordinator.core import events, instructions
from headgate_coordinator.core.events import Event
from headgate_coordinator.core.instructions import Instruction
from headgate_coordinator.core.policy import CheckpointPolicy
from support.coordinator_sim.slots import ViolationError

_ROUNDING_S = 1e-6
"""The owner adds the time to a moment, this subtracts two moments."""


class Patience:
    """Sees all that one owner is told and says. Raises ViolationError."""

    def __init__(self, policy: CheckpointPolicy) -> None:
        self._policy = policy
        self._went_on: dict[tuple[int, int], float] = {}
        self._refused: dict[tuple[type[Instruction], int], float] = {}
        self._aborts = 0
        self._aborted_at = 0.0
        self._to_pass: dict[tuple[int, int], set[str]] = {}
        self._late: list[set[str]] = []
        self._blamed = ""
        self._writers: set[str] = set()
        self._failed: dict[str, list[float]] = {}
        self._paused: set[str] = set()

    def told(self, event: Event, now: float) -> None:
        """Before the core hears it."""
        if isinstance(event, events.BarrierPassed):
            self._to_pass.get((event.generation, event.checkpoint), set()).discard(event.process)
            if self._late and event.process in self._late[-1]:
                self._late.clear()
        match event:
            case events.WriterJoined(process):
                self._writers.add(process)
            case events.WriterLost(process):
                self._writers.discard(process)
            case events.Broken(process, _, _, True):
                self._failed.setdefault(process, []).append(now)
            case events.Progressed() | events.BarrierPassed() | events.Flushed():
                self._went_on[event.generation, event.checkpoint] = now
            case events.InstantRefused():
                self._refused[instructions.IssueInstant, event.generation] = now
            case events.CommitRefused():
                self._refused[instructions.CommitCheckpoint, event.generation] = now
            case events.SlotWon():  # the store takes slots: what waits for it need not wait longer
                self._aborts = 0
                self._refused.clear()
            case _:
                pass

    def says(self, instruction: Instruction, now: float) -> None:
        """Before it is carried out."""
        match instruction:
            case instructions.Alarm(text) if "was aborted" in text:
                self._aborts, self._aborted_at = self._aborts + 1, now
                self._check_stuck(text, now)
                self._check_blame(text)
            case instructions.Alarm(text) if " is excluded: it alone " in text:
                self._blamed = text.split()[1]
            case instructions.Alarm(text) if " is excluded: it could not go on " in text:
                self._check_failing(text.split()[1], now)
            case instructions.Send(process, generation, instructions.Barrier(number)):
                self._to_pass.setdefault((generation, number), set()).add(process)
            case instructions.Send(process, _, instructions.Attach(membership)) if process in dict(membership.members):
                self._paused.discard(process)
                self._check_size(instruction)
            case instructions.IssueInstant() | instructions.CommitCheckpoint():
                refused_at = self._refused.pop((type(instruction), instruction.generation), -1e9)
                if now - refused_at < self._policy.checkpoint_min_interval - _ROUNDING_S:
                    raise ViolationError(f"{instruction} is tried again at once after a refusal")
            case instructions.Send(_, _, instructions.Attach()):
                self._check_size(instruction)
            case instructions.Send(_, _, instructions.Grant()):
                if self._aborts > 1 and now - self._aborted_at < self._policy.checkpoint_min_interval - _ROUNDING_S:
                    raise ViolationError(f"{instruction} right behind {self._aborts} aborts in a row")
            case _:
                pass

    def _check_size(self, attach: Instruction) -> None:
        match attach:
            case instructions.Send(_, generation, instructions.Attach(membership)) if (
                generation > 1 and membership.checkpoint == 1
            ):
                if membership.intake_bytes != self._policy.first_checkpoint_bytes:
                    raise ViolationError(f"the first checkpoint behind an abort takes {membership.intake_bytes} bytes")
            case _:
                pass

    def _check_failing(self, process: str, now: float) -> None:
        """A writer is left out for its failures when it had three in five minutes, and half of the writers stay (rule RO13)."""
        self._paused = (self._paused | {process}) & self._writers
        lately = [at for at in self._failed.get(process, []) if now - at < 300.0]
        if len(lately) < 3 or 2 * len(self._paused) > len(self._writers):
            raise ViolationError(f"writer {process} is excluded for {len(lately)} failures, as {self._paused} of {self._writers}")

    def _check_stuck(self, text: str, now: float) -> None:
        """A checkpoint that makes progress is not aborted for its time."""
        generation = int(text.split()[1])
        latest = max((at for (each, _), at in self._went_on.items() if each == generation), default=-1e9)
        if " made no progress for " in text and now - latest < self._policy.checkpoint_timeout - _ROUNDING_S:
            raise ViolationError(f"{text}, but it did {now - latest:g} s ago")

    def _check_blame(self, text: str) -> None:
        """A writer is left out for its silence when it alone had three checkpoints in a row aborted (rule RO11)."""
        words = text.split()
        if " made no progress for " in text:
            self._late.append(self._to_pass.get((int(words[1]), int(words[5])), set()))
        if self._blamed and self._late[-3:] != [{self._blamed}] * 3:
            raise ViolationError(f"writer {self._blamed} is excluded, but {self._late} held the last checkpoints up")
        self._blamed = ""
