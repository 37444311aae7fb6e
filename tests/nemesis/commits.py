"""When a table's commits came, seen from outside: a thread looks at the timeline's folder."""

import os
import time

from support.lookout import Lookout

PERIOD_S = 0.1


class CommitWatch:
    """``seen``: moments (``time.monotonic``) at which another completed delta commit was there. ``folder``: the table's."""

    def __init__(self, folder: str) -> None:
        self.seen: list[float] = []
        self._timeline = f"{folder}/.hoodie/timeline"
        self._newest = ""
        self._lookout = Lookout("commits", self._look, PERIOD_S)

    def stop(self) -> None:
        self._lookout.stop()

    def _look(self) -> None:
        try:
            names = os.listdir(self._timeline)
        except FileNotFoundError:  # moved away for a while
            return
        newest = max((_completion(name) for name in names if name.endswith(".deltacommit")), default="")
        if newest > self._newest:
            self._newest = newest
            self.seen.append(time.monotonic())


def _completion(name: str) -> str:
    return name.partition("_")[2]
