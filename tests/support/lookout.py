"""A thread that looks at something again and again while others work."""

import threading
from collections.abc import Callable


class Lookout:
    """Calls ``look`` every ``period`` seconds, the first time after one period, until ``stop``."""

    def __init__(self, name: str, look: Callable[[], object], period: float) -> None:
        self._look = look
        self._period = period
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last look is over."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._period):
            self._look()
