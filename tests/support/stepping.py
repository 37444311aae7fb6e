"""``python -m support.stepping MODULE [OPTIONS] -- ARGUMENTS…``, with ``--record FILE``, ``--kill-at STEP:N``,
``--pause-at STEP:N``, ``--plant BUG`` and ``--clock OFFSET``.

Runs a service (``python -m MODULE ARGUMENTS…``) whose World kills, or stops (SIGSTOP), the process when it reaches STEP for the
N-th time. FILE gets a line for each step that was reached, before anything happens there, so that a test fails when its step
was never reached. OFFSET is a file of ``support.moved_clock``.
"""

import argparse
import os
import runpy
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from headgate_runtime.world import World
from support.moved_clock import follow_clock
from support.planted import PLANTS


class Steps:
    """``reached`` for a World: counts, notes and acts. Steps are reached from several threads."""

    def __init__(self, record: Path | None, acts: Mapping[tuple[str, int], signal.Signals]) -> None:
        self._hits: Counter[str] = Counter()
        self._acts = acts
        self._turn = threading.Lock()
        self._file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if record else None

    def reached(self, step: str) -> None:
        with self._turn:
            self._hits[step] += 1
            if self._file is not None:
                os.write(self._file, f"{step}\n".encode())
            if act := self._acts.get((step, self._hits[step])):
                os.kill(os.getpid(), act)


def hits(record: Path) -> Counter[str]:
    """How often each step was reached, of all runs that were recorded in this file."""
    return Counter(record.read_text(encoding="utf-8").splitlines()) if record.exists() else Counter()


def run_with(module: str, arguments: Sequence[str], reached: Callable[[str], None]) -> None:
    """As ``python -m module arguments…``, with that ``reached`` in every ``World.real()``."""
    real = World.real
    World.real = classmethod(lambda cls: replace(real(), reached=reached))  # type: ignore[method-assign,assignment]
    sys.argv = [module, *arguments]
    with _steps_of(module, reached):
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _steps_of(module: str, reached: Callable[[str], None]) -> AbstractContextManager[None]:
    """Writers and compactors report their steps to their World; a coordinator has to be wrapped."""
    if module != "headgate_coordinator":
        return nullcontext()
    from support.coordinator_steps import reported_steps  # here, so that other services do not load a coordinator

    return reported_steps(reached)


def main() -> None:
    parser = argparse.ArgumentParser(prog="support.stepping", description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--kill-at", action="append", default=[], metavar="STEP:N")
    parser.add_argument("--pause-at", action="append", default=[], metavar="STEP:N")
    parser.add_argument("--plant", action="append", default=[], choices=PLANTS)
    parser.add_argument("--clock", type=Path)
    mine, arguments = _split(sys.argv[1:])
    told = parser.parse_args(mine)
    acts = {_hit(at): signal.SIGKILL for at in told.kill_at} | {_hit(at): signal.SIGSTOP for at in told.pause_at}
    for plant in told.plant:
        PLANTS[plant]()
    if told.clock:
        follow_clock(told.clock)
    run_with(told.module, arguments, Steps(told.record, acts).reached)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Before and behind ``--``."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def _hit(text: str) -> tuple[str, int]:
    step, _, number = text.partition(":")
    return step, int(number or 1)


if __name__ == "__main__":
    main()
