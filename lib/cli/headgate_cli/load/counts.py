"""How far a load is, by what is committed. Pure."""

from collections import deque

from headgate_cli.reading.source import FilePiece


class LoadCounts:
    """``skip``: rows that earlier loads of the file committed; ``now``: seconds of any clock that only grows."""

    def __init__(self, skip: int, now: float) -> None:
        self.sent = self.committed = skip
        """Numbers of the last row that was sent, and of the last one that is committed."""
        self.done = 0
        """How far the file is read up to the last committed row, in the unit of its source."""
        self.moved = now
        """When rows were committed last."""
        self._skip = skip
        self._began = now
        self._pieces: deque[tuple[int, int]] = deque()

    def piece_sent(self, piece: FilePiece) -> None:
        """Counts a piece as sent."""
        self.sent = piece.last_row
        self._pieces.append((piece.last_row, piece.done))

    def rows_committed(self, offset: int, now: float) -> bool:
        """Counts rows up to ``offset`` as committed. Returns whether these are more than before."""
        if offset <= self.committed:
            return False
        self.committed, self.moved = offset, now
        while self._pieces and self._pieces[0][0] <= offset:
            _, self.done = self._pieces.popleft()
        return True

    def rows_per_s(self, now: float) -> int:
        """Rows committed a second, since the load began."""
        return round((self.committed - self._skip) / max(1e-3, now - self._began))
