"""What a producer in a pod writes down, in the store and not on its node, because nodes are lost: one object for each attempt.

``sent`` is noted before it is true, ahead by many numbers, so that not every call needs a note. That is right for the judge as
long as a later attempt of the producer ends: what was committed of the earlier one is what the later one was told.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath

from headgate_tables.storage.store import Outcome, Store

FINISH = "finish"
"""A file of this name asks all producers to flush and end."""


@dataclass(slots=True)
class Attempt:
    """One channel that a producer opened. ``committed``: what opening answered, -1 before that; ``acked``: durable.

    ``failures``: errors that the program saw, one a call; ``slowest``: seconds of the longest call; ``superseded``: a newer
    attempt took the channel over.
    """

    producer: str
    number: int
    pod: str = ""
    committed: int = -1
    sent: int = 0
    acked: int = 0
    calls: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)
    superseded: bool = False
    ended: bool = False


class Notes:
    """The attempts of producers below a folder of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self, producer: str, pod: str) -> Attempt:
        """The next attempt, which no other process has."""
        number = len(self._store.list_folder(producer).files)
        while True:
            number += 1
            attempt = Attempt(producer, number, pod)
            if self._store.create(_path(attempt), [_bytes(attempt)], durable=True) is Outcome.CREATED:
                return attempt

    def note(self, attempt: Attempt) -> None:
        self._store.replace(_path(attempt), [_bytes(attempt)])

    def attempts(self) -> Sequence[Attempt]:
        """Of all producers, by producer and number."""
        producers = sorted(self._store.list_folder("").folders)
        paths = [f"{name}/{file}" for name in producers for file in self._store.list_folder(name).files]
        found = [Attempt(**json.loads(self._store.get(path).to_pybytes())) for path in paths]
        return sorted(found, key=lambda attempt: (attempt.producer, attempt.number))

    def ask_to_finish(self) -> None:
        self._store.create(FINISH, [b"-"], durable=True)

    @property
    def should_finish(self) -> bool:
        return self._store.size(FINISH) is not None


def _path(attempt: Attempt) -> str:
    return str(PurePosixPath(attempt.producer, f"{attempt.number:06}.json"))


def _bytes(attempt: Attempt) -> bytes:
    return json.dumps(asdict(attempt)).encode()
