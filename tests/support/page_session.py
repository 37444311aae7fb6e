"""A page as a reader works through it: its blocks in their order, in one folder, with one Python, against one cluster."""

import ast
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.pages import Block

USUAL_ADDRESS = "localhost:7070"
"""The cluster of pages."""
OUTPUT = "text"
"""The language of a block that shows what the block before it prints; ``…`` stands for anything."""


class PageSession:
    """``address``: of the cluster that stands in for the pages'. ``places``: what else pages name, and what stands in for it.
    ``programs``: a folder whose programs are taken before those of this Python.
    """

    def __init__(
        self, address: str, folder: Path, places: Mapping[str, str] | None = None, *, programs: Path | None = None
    ) -> None:
        self._folder = folder
        self._places = {USUAL_ADDRESS: address, **(places or {})}
        self._names: dict[str, object] = {"__name__": "__main__"}
        self._printed = ""
        path = [*([str(programs)] if programs else []), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._env = {**os.environ, "PATH": os.pathsep.join(path), "HEADGATE_CONNECT": address, "COLUMNS": "200"}

    async def work_through(self, block: Block) -> None:
        """Runs the block, or compares it with what was printed. Raises what it raises, and AssertionError."""
        text = block.text
        for shown, here in self._places.items():
            text = text.replace(shown, here)
        match block.language:
            case "python":
                self._printed = await self._python(text, block)
            case "sh":
                self._printed = self._shell(text, block)
            case _:
                compare(text, self._printed, f"{block.page}:{block.line}")

    async def _python(self, code: str, block: Block) -> str:
        lines = "\n" * block.line  # so that a traceback has the page's line
        compiled = compile(lines + code, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._folder):
            coroutine = eval(compiled, self._names)
            if inspect.iscoroutine(coroutine):
                await coroutine
        return printed.getvalue()

    def _shell(self, script: str, block: Block) -> str:
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=self._folder, env=self._env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{block.page}:{block.line} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def compare(shown: str, printed: str, where: str) -> None:
    """Raises AssertionError unless each shown line was printed, in this order. Widths of columns are free."""
    left = iter([*map(_squeezed, printed.splitlines())])
    for line in filter(None, map(_squeezed, shown.splitlines())):
        wanted = re.compile(".*".join(map(re.escape, line.split("…"))))
        assert any(wanted.fullmatch(each) for each in left), f"{where} shows {line!r}, which is not in:\n{printed}"


def _squeezed(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
