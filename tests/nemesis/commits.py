"""When a table's commits came, seen from outside: a thread looks at the timeline's folder."""

import os
import threading
import time

PERIOD_S = 0.1


class CommitWatch:
    """``seen``: moments (``time.monotonic``) at which another completed delta commit was there. ``folder``: the table's."""

    def __init__(self, folder: str) -> None:
        self.seen: list[float] = []
        self._timeline = f"{folder}/.hoodie/timeline"
        self._newest = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commits")
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            newest = max((_completion(name) for name in os.listdir(self._timeline) if name.endswith(".deltacommit")), default="")
            if newest > self._newest:
                self._newest = newest
                self.seen.append(time.monotonic())


def _completion(name: str) -> str:
    return name.partition("_")[2]
