"""A producer and its stream to a writer, as the simulation has them."""

from collections import deque
from random import Random

from support.coordinator_sim.slots import Row, ViolationError

LONGEST_BATCH = 3


class Connection:
    """An Append stream under one hold. Batches may still be under way when its client has left."""

    def __init__(self, channel: str, hold: int) -> None:
        self.channel = channel
        self.hold = hold
        self.batches: deque[tuple[int, tuple[Row, ...]]] = deque()
        self.client_gone = False
        self.producer: Producer | None = None

    @property
    def over(self) -> bool:
        """Nothing comes from it any more."""
        return self.producer is None and not self.batches

    def end(self, why: str) -> None:
        """The writer ends it."""
        producer, self.producer = self.producer, None
        if producer is not None:
            producer.ended(why)


class Producer:
    """Sends the channel's rows up to ``rows``; on each opening it goes on behind the committed offset, with the same cut.
    ``keys``: how many keys its rows have."""

    def __init__(self, channel: str, rows: int, random: Random, keys: int) -> None:
        self.channel = channel
        self.incarnation = 0
        self.fenced = False
        self.dead = False
        self.opening = False
        self.connection: Connection | None = None
        self._rows = rows
        self._sent = 0
        self._cuts: list[int] = []
        self._random = random
        self._keys = keys

    @property
    def idle(self) -> bool:
        """It would open its channel now."""
        return not (self.over or self.opening or self.connection)

    @property
    def over(self) -> bool:
        """It sends nothing any more."""
        return self.fenced or self.dead

    @property
    def has_more(self) -> bool:
        """Something is left to send on its connection."""
        return self.connection is not None and self._sent < self._rows

    def granted(self, connection: Connection, incarnation: int, committed: int) -> bool:
        """Whether it still wants the channel."""
        self.opening = False
        if self.over:
            return False
        if self.incarnation not in (0, incarnation):
            raise ViolationError(f"a reconnect of {self.channel} with incarnation {self.incarnation} is answered {incarnation}")
        if not self._cuts:
            self._cuts = [committed]
            while self._cuts[-1] < self._rows:
                self._cuts.append(min(self._rows, self._cuts[-1] + self._random.randint(1, LONGEST_BATCH)))
        self.incarnation = incarnation
        self.connection = connection
        connection.producer = self
        self._sent = committed
        return True

    def refused(self, why: str) -> None:
        """Its open was."""
        self.opening = False
        self.ended(why)

    def ended(self, why: str) -> None:
        """Its connection is over."""
        self.connection = None
        self.fenced = self.fenced or why == "CODE_CHANNEL_TAKEN_OVER"

    def send(self) -> None:
        """The next batch."""
        if self.connection is not None and self._sent < self._rows:
            upto = next(cut for cut in self._cuts if cut > self._sent)
            rows = tuple(
                Row(self.channel, offset, self.incarnation, offset * 5 // 3 % self._keys)
                for offset in range(self._sent + 1, upto + 1)
            )
            self.connection.batches.append((self._sent, rows))
            self._sent = upto

    def leave(self) -> None:
        """Its stream breaks; some of what is under way still arrives."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.producer = None
            connection.client_gone = True
            for _ in range(self._random.randint(0, len(connection.batches))):
                connection.batches.pop()

    def die(self) -> None:
        """For good."""
        self.dead = True
        self.leave()
