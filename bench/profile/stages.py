"""CPU by stage: each stage's own, without that of the stages that it calls."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Watched = tuple[Any, str, str]
"""A module or class, the name of its function, and the stage of what that does."""


class Stages:
    """Seconds of the process's CPU by stage, threads of Arrow and of stores included: one thread alone may begin stages.

    ``seconds``: in the order in which the stages first began.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._current: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What runs inside belongs to this stage, unless a stage inside of it takes it."""
        self._switch()
        self.seconds[name] += 0.0
        self._current.append(name)
        try:
            yield
        finally:
            self._switch()
            self._current.pop()

    def _switch(self) -> None:
        now = time.process_time()
        if self._current:
            self.seconds[self._current[-1]] += now - self._since
        self._since = now

    @contextmanager
    def watching(self, watched: Sequence[Watched]) -> Iterator[None]:
        """Replaces the functions by ones that note their stage, until the end."""
        with ExitStack() as ends:
            for owner, name, stage in watched:
                original = getattr(owner, name)
                setattr(owner, name, self._noted(original, stage))
                ends.callback(setattr, owner, name, original)
            yield

    def _noted(self, function: Callable[P, R], stage: str) -> Callable[P, R]:
        @wraps(function)
        def noted(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.stage(stage):
                return function(*args, **kwargs)

        return noted
