"""What one producer wrote down: which attempts it had, what it sent, what was acknowledged. Survives kill -9 of the producer."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Attempt:
    """One process of the producer. ``committed``: what opening answered; ``sent``: the last number handed to the SDK."""

    number: int
    committed: int
    sent: int


@dataclass(slots=True)
class History:
    """What the journal says. ``acked``: the highest number acknowledged as durable or better, by whichever attempt.

    ``kept``: numbers that the channel went past without, as their slice took no rows, each with the attempt that sent it. They
    come through a channel of their own, in this order (``support.kept_rows``). ``kept_acked``: how many of them are durable.
    """

    producer: str
    attempts: list[Attempt] = field(default_factory=list)
    acked: int = 0
    kept: dict[int, int] = field(default_factory=dict)
    kept_acked: int = 0

    @property
    def known_committed(self) -> int:
        """A later attempt's committed offset is as good as an acknowledgement."""
        return max([self.acked, *(attempt.committed for attempt in self.attempts)])


class Journal:
    """Each line is one write(), in the kernel's hands when the call returns. ``sent`` is noted before it is sent, acks after."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def opened(self, attempt: int, committed: int) -> None:
        self._note({"opened": attempt, "committed": committed})

    def sent(self, number: int) -> None:
        self._note({"sent": number})

    def acked(self, number: int, level: str) -> None:
        self._note({"acked": number, "level": level})

    def kept(self, numbers: Iterable[int]) -> None:
        """Noted before the channel goes past them."""
        self._note({"kept": [*numbers]})

    def kept_acked(self, count: int) -> None:
        """So many of those that were kept are durable."""
        self._note({"kept_acked": count})

    def close(self) -> None:
        os.close(self._file)

    def _note(self, entry: Mapping[str, object]) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


def read_journal(path: Path, producer: str) -> History:
    """Empty if there is none yet."""
    history = History(producer)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():  # a reader may see a part of a write() that goes on
        entry = json.loads(line)
        if "opened" in entry:
            history.attempts.append(Attempt(entry["opened"], entry["committed"], entry["committed"]))
            # What was kept and is not committed past is sent again in its place.
            history.kept = {number: attempt for number, attempt in history.kept.items() if number <= entry["committed"]}
        elif "sent" in entry:
            history.attempts[-1].sent = entry["sent"]
        elif "kept" in entry:
            history.kept |= dict.fromkeys(entry["kept"], history.attempts[-1].number)
        elif "kept_acked" in entry:
            history.kept_acked = max(history.kept_acked, entry["kept_acked"])
        elif entry["level"] in ("durable", "queryable"):
            history.acked = max(history.acked, entry["acked"])
    return history
