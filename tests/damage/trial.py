"""One trial: everything that programs do with a table, on a damaged one, in a process of its own that is watched."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from damage.templates import NAME, Template, text_of
from damage.wounds import kind_of
from headgate_tables import hudi
from headgate_tables.catalog import Catalog
from headgate_tables.errors import TablesError
from headgate_tables.system import System
from support.memory import peak_memory

MOST_S = 5.0
"""CPU time of a step, so that a busy machine changes no verdict."""
MOST_BYTES = 512 << 20
"""More than the process had before the trial."""
_ADDRESSES = 8 << 30
"""Of address space: what runs away ends by itself, and its peak is above ``MOST_BYTES`` by far."""
_HANGS_S = 120.0


@dataclass(slots=True)
class Step:
    """What a program got. ``error``: class of a TablesError, "" for none; ``raw``: traceback of any other. ``seconds``: CPU."""

    name: str
    rows: list[str] | None = None
    error: str = ""
    message: str = ""
    raw: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """``ended``: why the process did not come to its end, "" if it did. ``printed``: what it wrote to stdout and stderr.
    ``broken_pages``: base files of which Arrow alone says that a page's checksum is wrong, by their paths in the store.
    """

    steps: list[Step] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    broken_pages: list[str] = field(default_factory=list)
    ended: str = ""
    printed: str = ""
    peak: int = 0

    def step(self, name: str) -> Step | None:
        """None when it did not come to it."""
        return next((step for step in self.steps if step.name == name), None)


def run(template: Template, store: Path) -> Outcome:
    """Forks a process that goes through all steps. ``store``: the damaged copy."""
    results, printed = store.with_name(f"{store.name}.results"), store.with_name(f"{store.name}.printed")
    child = os.fork()
    if child == 0:
        _be_child(template, store, results, printed)
    code = _wait(child)
    outcome = Outcome(printed=printed.read_text(errors="replace")) if printed.exists() else Outcome()
    for line in results.read_text().splitlines() if results.exists() else []:
        record = json.loads(line)
        if "peak" in record:
            outcome.peak, outcome.found, outcome.broken_pages = record["peak"], record["found"], record["broken_pages"]
        else:
            outcome.steps.append(Step(**record))
    if code != 0:
        outcome.ended = "hangs" if code is None else f"ended with {code}"
    for file in (results, printed):
        file.unlink(missing_ok=True)
    return outcome


def _wait(child: int) -> int | None:
    watched = os.pidfd_open(child)
    try:
        if not select.select([watched], [], [], _HANGS_S)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
    finally:
        os.close(watched)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _be_child(template: Template, store: Path, results: Path, printed: Path) -> None:
    """Does not return."""
    code = 1
    try:
        output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        before = peak_memory(os.getpid())
        with results.open("w") as told:
            trial = _Trial(template, store, lambda step: print(json.dumps(asdict(step)), file=told, flush=True))
            trial.go()
            peak = peak_memory(os.getpid()) - before
            told.write(json.dumps({"peak": peak, "found": trial.found, "broken_pages": trial.broken_pages}) + "\n")
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _Trial:
    def __init__(self, template: Template, store: Path, tell: Callable[[Step], object]) -> None:
        self._template = template
        self._store = store
        self._tell = tell
        self.found: list[str] = []
        self.broken_pages: list[str] = []

    def go(self) -> None:
        """Reading first, since all that follows changes the table."""
        self.broken_pages = [path for path in base_files(self._store) if has_broken_page(self._store / path)]
        with self._step("open"):
            Catalog(str(self._store), None, System.real()).entry(NAME)
        with self._step("scan") as step, self._table() as table:
            step.rows = text_of(table)
        with self._step("look") as step, self._table() as table:
            table.instants()
            table.commits()
        if self._template.saved is not None:
            with self._step("past") as step, self._table() as table:
                step.rows = text_of(table, self._template.saved[0])
            with self._step("changes") as step, self._table() as table:
                table.scan(since=self._template.saved[0], meta_columns=True).to_table()
        with self._step("verify") as step, self._table() as table:
            self.found = [f"{finding.path}: {finding.problem}" for finding in table.verify().findings]
        batch = self._template.batch
        if batch is None:
            return
        with self._step("write") as step, self._table() as table:
            table.upsert(batch)
        with self._step("compact") as step, self._table() as table:
            table.compact()
        for name in ("clean", "archive"):
            with self._step(name) as step, self._table() as table:
                getattr(table, name)()
        with self._step("scan again") as step, self._table() as table:
            step.rows = text_of(table)
        with self._step("repair") as step, self._table() as table:
            table.repair()
        with self._step("adopt") as step, self._table() as table:
            table.adopt()

    def _table(self) -> hudi.Table:
        return hudi.open_table(str(self._store / NAME))

    @contextmanager
    def _step(self, name: str) -> Iterator[Step]:
        step, began = Step(name), time.process_time()
        try:
            yield step
        except TablesError as error:
            step.error, step.message = type(error).__name__, str(error)
        except Exception:  # noqa: BLE001 - what a trial is about
            step.raw = traceback.format_exc()
        step.seconds = time.process_time() - began
        self._tell(step)


def base_files(store: Path) -> list[str]:
    """Paths in the store, without links: Arrow takes one to a folder for a data set of all that is below it."""
    files = [file for file in store.rglob("*.parquet") if file.is_file() and not file.is_symlink()]
    return [path for path in (str(file.relative_to(store)) for file in files) if kind_of(path) == "base file"]


def has_broken_page(file: Path) -> bool:
    """Whether Arrow alone, without a line of ours, finds a page of the file whose checksum is wrong."""
    try:
        pq.read_table(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        return "checksum" in str(error).lower()
    return False
