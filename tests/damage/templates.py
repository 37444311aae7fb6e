"""The tables that are damaged: with every kind of file that a table of ours has, or one that it has taken over."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_tables import hudi
from headgate_tables.arrow import pc
from headgate_tables.catalog import Catalog
from headgate_tables.commitlog import commit_log
from headgate_tables.commitlog.slot import hash_of
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, encode_block
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.system import System
from support.golden import unpack
from support.tables import SHORT, as_text, create, keys, rows

NAME = "table"
_LONG_AGO = "20200101000000000"


@dataclass(frozen=True, slots=True)
class Template:
    """A store with one table in it. ``right``: its rows as text; ``saved``: those as of its savepoint, if it has one.

    ``batch``: a row that the table takes, None for a table that is only read; ``written``: what its rows are then. ``vouched``:
    slots hold a checksum of every data file. ``named``: data files, from the store, that slots name which no fold has taken in.
    ``newest``: the timeline's files, from the store, that the newest slot decided.
    """

    name: str
    store: Path
    right: list[str]
    batch: pa.Table | None
    written: list[str]
    saved: tuple[str, list[str]] | None
    vouched: bool
    named: frozenset[str] = frozenset()
    newest: frozenset[str] = frozenset()


def made(folder: Path) -> list[Template]:
    """All of them, each in a folder of its own."""
    return [_template(name, make, folder / name) for name, make in _MAKERS.items()]


def copy(template: Template, to: Path) -> Path:
    """A store like the template's; its files are the same ones, so a damaged one is a new file under the name."""
    shutil.copytree(template.store, to, copy_function=os.link)
    return to


def text_of(table: hudi.Table, as_of: str | None = None) -> list[str]:
    """All rows."""
    return as_text(table.scan(as_of=as_of).to_table().to_pylist())


def _template(name: str, make: Callable[[Path], bool], store: Path) -> Template:
    store.mkdir(parents=True)
    vouched = make(store)
    Catalog(str(store), None, System.real()).add(NAME, NAME)
    place = str(store / NAME)
    with hudi.open_table(place) as table:
        right = text_of(table)
        saved = (table.savepoints[0], text_of(table, table.savepoints[0])) if table.savepoints else None
    batch, written = _written(store) if (store / NAME / LOG_LAYOUT.slots).exists() else (None, right)
    return Template(name, store, right, batch, written, saved, vouched, frozenset(_named(store)), frozenset(_newest(store)))


def _named(store: Path) -> Iterator[str]:
    table = store / NAME
    folded = max((file.name for file in (table / LOG_LAYOUT.folds).glob("*")), default="")
    for slot in (table / LOG_LAYOUT.slots).glob("*"):
        if slot.name > folded:
            for path, *_ in _body(slot).get("files", ()):
                yield f"{NAME}/{path}"


def _newest(store: Path) -> Iterator[str]:
    newest = max((store / NAME / LOG_LAYOUT.slots).glob("*"), default=None)
    for path, *_ in _body(newest).get("publish", ()) if newest else ():
        yield f"{NAME}/{path}"


def _body(slot: Path) -> Any:
    return json.loads(slot.read_bytes().partition(b"\n")[2])["body"]


def _written(store: Path) -> tuple[pa.Table, list[str]]:
    """A row of the table with a larger ordering value, and what a copy of the table is with it."""
    copied = store.with_name(f"{store.name}-written")
    shutil.copytree(store, copied)
    with hudi.open_table(str(copied / NAME)) as table:
        row = table.scan().to_table().slice(0, 1)
        batch = row.set_column(row.schema.get_field_index("ts"), row.schema.field("ts"), pc.add(row["ts"], 1000))
        table.upsert(batch)
        written = text_of(table)
    shutil.rmtree(copied)
    return batch, written


def _ours(store: Path) -> bool:
    """Folds, an archive of two levels, cleanings, a savepoint, offsets, an open plan; base files, logs of rows and of deletes."""
    commit_log.FOLD_EVERY = 5
    table = create(store, buckets=1)
    table.configure(SHORT)
    for number in range(12):
        table.upsert(rows(*((f"k{each}", number, f"note {number}") for each in range(8))))
        if number == 9:
            table.savepoint("before")
        if number % 3 == 2:
            table.compact()
            table.clean()
            table.archive()
    table.upsert(rows(("elsewhere", 1, "x"), ("there", 1, "y"), *_many(1), part="q"))
    table.upsert(rows(("k1", 100, "new"), ("k3", 2, "late"), ("z", 5, "fresh")))
    table.delete(keys(("k5", 100), ("k6", 2)))
    table.upsert(rows(("elsewhere", 3, "newer"), *_many(2), part="q"))
    table.win_offsets({"channel": (1, 20, "somebody", 1_700_000_000_000)})  # type: ignore[dict-item]
    table.plan_compaction(forced=True)
    table.delete(keys(("k7", 100)))
    return True


def _many(ts: int) -> Iterator[tuple[str, int, str]]:
    """So many that most bytes of a file are those of its pages, in values that no codec makes smaller."""
    return ((f"many{each}", ts, hash_of(f"{ts} {each}".encode())) for each in range(300))


def _adopted(store: Path) -> bool:
    """Avro blocks and a command block of another program, under our slots."""
    path = Path(unpack("h120_v8_mor_bucket_np", store))
    path.rename(store / NAME)
    headers = {
        HeaderKey.INSTANT_TIME: _LONG_AGO,
        HeaderKey.TARGET_INSTANT_TIME: _LONG_AGO,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    log = min((store / NAME).glob(".*.log.*_*"), key=lambda file: file.name)
    with log.open("ab") as file:
        file.write(b"".join(bytes(memoryview(piece)) for piece in encode_block(BlockKind.COMMAND, headers, [])))
    with hudi.open_table(str(store / NAME)) as table:
        table.adopt(buckets=2)
    return False


def _of_spark(golden: str) -> Callable[[Path], bool]:
    def make(store: Path) -> bool:
        Path(unpack(golden, store)).rename(store / NAME)
        return False

    return make


_MAKERS: Mapping[str, Callable[[Path], bool]] = {
    "ours": _ours,
    "adopted": _adopted,
    "archived": _of_spark("h120_v9_mor_archived"),
    "parquet logs": _of_spark("h120_v8_mor_parquetlog"),
}
