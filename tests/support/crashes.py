"""Kill -9 at the k-th file-system call of a script, in a forked process, and look at what is left in another.

The parent must not have used pyarrow's threads before: forked children inherit locks, not threads.
"""

import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass

CALLS = ("open", "write", "writev", "fsync", "link", "unlink", "mkdir", "rename", "rmdir")
"""Everything through which storage/local changes a disk; reads are left out, a kill there changes nothing."""

Script = Callable[[Callable[[str], None]], None]


@dataclass(frozen=True)
class Run:
    """What a child said before it ended. ``killed``: it met its k-th call; otherwise it came to its end."""

    said: list[str]
    killed: bool


def run_and_kill(script: Script, at: int) -> Run:
    """Runs ``script(say)`` in a child that is killed right before its ``at``-th file-system call (counted from 1)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(script, writer, at)
    os.close(writer)
    said = _read_all(reader)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Run(said, True)
    assert status == 0, "\n".join(said)
    return Run(said, False)


def run_whole(script: Script) -> list[str]:
    """Runs ``script(say)`` in a child to its end and returns what it said; fails with the child's traceback."""
    return run_and_kill(script, 0).said


def _run_child(script: Script, writer: int, at: int) -> None:
    write = os.write
    count = 0

    def hooked(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    code = 1
    try:
        for name in CALLS:
            setattr(os, name, hooked(name))
        script(lambda line: write(writer, f"{line}\n".encode()) and None)
        code = 0
    except BaseException:
        write(writer, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _read_all(descriptor: int) -> list[str]:
    with os.fdopen(descriptor) as pipe:
        return pipe.read().splitlines()
