"""What a load would do: columns, first rows, and the table that the rows would go to. Nothing is sent."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import headgate
from headgate.errors import SchemaError
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.load.creating import check_definition
from headgate_cli.load.inputs import InputFiles
from headgate_cli.load.loading import LoadOptions, check_file, new_columns, operation_of
from headgate_cli.load.plan import say_lacking, schema_of_files
from headgate_cli.load.sending import Sending
from headgate_cli.output import Output, counted
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import Source
from headgate_cli.reading.sources import format_of, open_source
from headgate_cli.table.python_rows import python_rows

_ROWS = 10


@dataclass(frozen=True, slots=True)
class DryRun:
    """Of one command."""

    output: Output
    inputs: InputFiles
    reading: ReadOptions
    options: LoadOptions

    def show(self, cluster: headgate.Headgate, name: str) -> None:
        """Prints columns with their types, the first ten rows and what would happen. Raises CommandError as the load would."""
        files, operation = self.inputs.paths, operation_of(self.options)
        table = {each.name: each for each in cluster.tables()}.get(name)
        types = schema_of_files(files, self.options["kind"], self.reading) if table is None else table.schema
        first = self._open(files[0], types)
        if table is not None:
            if self.options["create"]:
                check_definition(table, self.options)
            self._check(table, first)
            for path in files[1:]:
                self._check(table, self._open(path, types))
        self._show_columns(types)
        self._show_rows(first)
        shown = [self.inputs.address(path) for path in files]
        exists = table is not None
        self.output.print_json({"event": "plan", "table": name, "exists": exists, "operation": operation, "files": shown})
        self.output.print_text(self._would(name, exists=exists))

    def _open(self, path: Path, types: pa.Schema) -> Source:
        return open_source(path, format_of(path, self.options["kind"]), types, self.reading)

    def _check(self, table: headgate.TableInfo, source: Source) -> None:
        """Raises CommandError when the columns are such that the load would refuse every row, and says which ones lack."""
        operation = operation_of(self.options)
        check_file(source, self.reading, self.options)
        form = Sending(operation, self.options["operation_column"]).form(table, source)
        new = {field.name for field in new_columns(table, source, self.options)}
        columns = pa.schema([field for field in source.schema if field.name not in new])
        try:
            list(form.convert(pa.RecordBatch.from_pylist([], columns)))
        except SchemaError as error:
            raise CommandError(
                f"{source.path.name}: {error.message}", fix=error.fix, code=ExitCode.FIX_CALL, kind="SchemaError"
            ) from error
        if operation == "upsert":
            say_lacking(self.output, self.inputs.address(source.path), source, table)

    def _show_columns(self, types: pa.Schema) -> None:
        records = [{"event": "column", "name": field.name, "type": str(field.type)} for field in types]
        if self.output.json:
            self.output.print_records(records)
        else:
            self.output.print_table(["column", "type"], [[record["name"], record["type"]] for record in records])

    def _show_rows(self, source: Source) -> None:
        rows = next((piece.rows.slice(0, _ROWS) for piece in source.pieces(0)), None)
        first = python_rows(rows) if rows is not None else []
        if self.output.json:
            self.output.print_json({"event": "rows", "file": self.inputs.address(source.path), "rows": first})
        else:
            names = source.schema.names
            self.output.print_table(names, [[_cell(row[name]) for name in names] for row in first])

    def _would(self, name: str, *, exists: bool) -> str:
        files = counted(len(self.inputs.paths), "file")
        deletes = self.options["delete"]
        if exists:
            what = f"delete the rows of {files} from {name}, by their keys" if deletes else f"load {files} into {name}"
            return f"Would {what}. Nothing was changed."
        if self.options["create"]:
            what = f"delete the rows of {files} from it" if deletes else f"load {files}"
            return f"Would create {name} with these columns and {what}. Nothing was changed."
        if deletes:
            return f"There is no table {name}, and so no row to delete. Nothing was changed."
        return f"There is no table {name}: add --create --key COLUMN to make one with these columns. Nothing was changed."


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, bool) else str(value)
