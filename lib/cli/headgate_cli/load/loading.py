"""Loads one file after the other, each through its channel."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.types as pat

import headgate
from headgate_cli.load.earlier import claim, say_changed
from headgate_cli.load.identity import LoadIdentity, identify, state
from headgate_cli.load.inputs import STDIN, InputFiles
from headgate_cli.load.plan import say_lacking
from headgate_cli.load.progress import LoadProgress, show_left_out
from headgate_cli.load.sending import Sending, fitting
from headgate_cli.load.waiting import WaitReason
from headgate_cli.output import Output, counted
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.renaming import check_names
from headgate_cli.reading.source import Source, refused
from headgate_cli.reading.sources import format_of, open_source
from headgate_tables.system import SystemClock, SystemIds


class LoadOptions(TypedDict):
    """Options of ``headgate load`` by click's names."""

    kind: str | None
    dry_run: bool
    operation_column: str
    delete: bool
    channel: str
    appended: bool
    again: bool
    create: bool
    key: str
    ordering: str
    partition_by: str
    buckets: int | None


def operation_of(options: LoadOptions) -> str:
    """upsert, delete, or mixed, which a column tells for each row."""
    return "delete" if options["delete"] else "mixed" if options["operation_column"] else "upsert"


def check_file(source: Source, reading: ReadOptions, options: LoadOptions) -> None:
    """Raises CommandError for a file with a column that no table has. Deletes ignore such."""
    if operation_of(options) != "delete":
        names = [name for name in source.schema.names if name != options["operation_column"]]
        check_names(names, source.path.name, format_of(source.path, options["kind"]), reading.sql)


def new_columns(table: headgate.TableInfo, source: Source, options: LoadOptions) -> "Sequence[pa.Field[pa.DataType]]":
    """Those with values in the file that the table gets before its rows are loaded: none, unless it evolves."""
    if operation_of(options) == "delete" or table.evolve == "refuse":
        return []
    known = {*table.schema.names, options["operation_column"]}
    return [field for field in source.schema if field.name not in known and not pat.is_null(field.type)]


@dataclass(frozen=True, slots=True)
class Loading:
    """What the loads of one command have in common."""

    output: Output
    table: headgate.Table
    inputs: InputFiles
    reading: ReadOptions
    waits_for: WaitReason
    options: LoadOptions
    identities: dict[tuple[Path, tuple[int, int]], LoadIdentity] = field(default_factory=dict)
    """Of files as they were when they were read whole for it, with their states."""

    def load(self, path: Path) -> None:
        """Loads one of the files. Raises CommandError, HeadgateError."""
        before = state(path)
        bad = BadRows(self.reading)
        source = self._open(path, bad)
        if operation_of(self.options) == "upsert":
            say_lacking(self.output, self.inputs.address(path), source, self.table.info)
        this = self._identity(path)
        if self.options["again"]:
            this = replace(this, again=SystemIds().token()[:16])
        name = self.options["channel"] or this.channel
        sending = Sending(operation_of(self.options), self.options["operation_column"])
        rows = fitting(source, sending.form(self.table.info, source), bad)
        sent = 0
        try:
            with (
                self.table.channel(name) as channel,
                LoadProgress(self.output, source, channel, self.waits_for, SystemClock()) as progress,
            ):
                skip = channel.committed_offset
                self._look_back(path, name, this, skip)
                for piece in rows.pieces(skip):
                    sending.send(channel, piece)
                    sent += piece.rows.num_rows
                    progress.sent(piece)
                channel.flush("queryable")
        finally:
            if self.reading.reject_file:
                bad.write(Path(self.reading.reject_file), source.header)
        if state(path) != before:
            raise refused(
                f"{path.name} was changed while it was loaded", "Run the command again: it loads the file as it is now."
            )
        show_left_out(self.output, self.inputs.address(path), path.name, bad, self.reading)
        self._say_loaded(path, name, sent, skip)

    def _open(self, path: Path, bad: BadRows) -> Source:
        """Opens a file with the table's types. A table that evolves gets the columns that the file has besides."""
        source = open_source(path, self._kind(path), self.table.info.schema, self.reading, bad)
        check_file(source, self.reading, self.options)
        if not (new := new_columns(self.table.info, source, self.options)):
            return source
        added = list(self.table.evolve(pa.schema(new)).added)
        self.output.print_json({"event": "evolved", "table": self.table.info.name, "added": added})
        self.output.print_text(f"{path.name} brings {', '.join(added)}: added to {self.table.info.name}.", fg="yellow")
        return open_source(path, self._kind(path), self.table.info.schema, self.reading, bad)

    def _look_back(self, path: Path, channel: str, load: LoadIdentity, skip: int) -> None:
        """Looks whether the file is that of earlier loads. ``skip``: rows that are committed through the channel."""

        def own() -> set[str]:
            return {self._identity(other).channel for other in self.inputs.paths if other.name == path.name}

        if self.options["channel"]:
            claim(self.table, path.name, channel, load, skip, appended=self.options["appended"])
        elif not (skip or self.options["again"] or path.name == STDIN):
            say_changed(self.output, self.table, path.name, load, own, "deletes" if self.options["delete"] else "upserts")

    def _say_loaded(self, path: Path, channel: str, sent: int, skip: int) -> None:
        name = self.table.info.name
        self.output.print_json(
            {"event": "loaded", "file": self.inputs.address(path), "table": name, "rows": sent, "skipped": skip}
        )
        if skip and not sent:
            given = self.options["channel"]
            known = f"the channel {channel} is at row {skip:,}" if given else f"its {skip:,} rows were loaded before"
            self.output.print_text(f"{path.name}: nothing to load: {known}. To load it once more: --again.", fg="yellow")
            return
        done = f" ({skip:,} rows were loaded before)" if skip else ""
        self.output.print_text(f"{path.name}: {counted(sent, 'row')} loaded{done}.", fg="green")

    def _identity(self, path: Path) -> LoadIdentity:
        """Reads a file once, and once more after it was changed."""
        known = path, state(path)
        if known not in self.identities:
            kind = f"{self._kind(path)} {self.options['operation_column']}"
            self.identities[known] = identify(path, operation_of(self.options), self.reading, kind)
        return self.identities[known]

    def _kind(self, path: Path) -> str:
        return format_of(path, self.options["kind"])
