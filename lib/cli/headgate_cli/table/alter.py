"""`headgate table alter`: adds columns, widens types, lets columns be null."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import pyarrow as pa

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner, is_address, open_address, table_command
from headgate_cli.output import Output
from headgate_cli.table.schemas import parse_type
from headgate_tables.face.altering import Alteration

_TYPED = "COLUMN=TYPE"


@click.command("alter", short_help="Add columns, widen types.")
@click.option("--add", multiple=True, metavar=_TYPED, help="A new column, null in the rows that are there; may be repeated.")
@click.option("--widen", multiple=True, metavar=_TYPED, help="Give a column a type that holds all of its values, and more.")
@click.option("--nullable", multiple=True, metavar="COLUMN", help="Let a column be null.")
@click.option("--plan-only", is_flag=True, help="Show what would change; change nothing.")
@table_command
def alter(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    add: Sequence[str],
    widen: Sequence[str],
    nullable: Sequence[str],
    plan_only: bool,
) -> None:
    """Changes the columns of TABLE (a name, or an address with a slash) while it is in use. No file is written anew.

    COLUMN is a name, or a path: address.zip is a field of the struct address, tags.element the item of a list, prices.value a
    map's value. TYPE is one that `headgate table create --help` lists. Wider: int32 to int64 or float64, float32 to float64, and
    decimals with more digits before the point. Columns of the key, partition and ordering stay as they are, and no column is
    dropped or renamed: some reader of the table could not follow that.

    Programs that send the columns of before go on, and their rows are null in new columns. Of a table with a widened column, or
    a field added inside one, hudi-rs 0.5 refuses what is not compacted since: `headgate compact TABLE`.

    \b
    Examples:
      headgate table alter flights --add gate=string --plan-only
      headgate table alter flights --add gate=string --add "fares=double[]" --widen dep_delay=int64
      headgate table alter s3://lake/flights --nullable carrier
    """  # noqa: D301 - click wants the backspace
    alteration = Alteration(_types("--add", add), _types("--widen", widen), tuple(dict.fromkeys(nullable)))
    if not (alteration.add or alteration.widen or alteration.nullable):
        raise click.UsageError("give --add, --widen or --nullable")
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            done = table.alter(alteration, plan_only=plan_only)
        changed: dict[str, Any] = {"added": done.added, "widened": done.widened, "nullable": done.nullable}
    else:
        add_types, widen_types = _message(alteration.add), _message(alteration.widen)
        said = call_owner(
            access,
            table_name,
            lambda owner: owner.alter(add_types, widen_types, alteration.nullable, plan_only=plan_only),
        )
        changed = {"added": said.added, "widened": said.widened, "nullable": said.nullable}
    _show(output, table_name, {name: list(texts) for name, texts in changed.items()}, plan_only=plan_only)


def _types(option: str, given: Sequence[str]) -> dict[str, pa.DataType]:
    types: dict[str, pa.DataType] = {}
    for text in given:
        column, equals, kind = text.partition("=")
        if not (equals and column.strip()):
            raise click.UsageError(f"{option} {text!r} is not {_TYPED}")
        if column.strip() in types:
            raise click.UsageError(f"{option} names {column.strip()!r} twice")
        try:
            types[column.strip()] = parse_type(kind)
        except ValueError as error:
            raise click.UsageError(f"{option} {text}: {error}; `headgate table create --help` lists types") from error
    return types


def _message(types: Mapping[str, pa.DataType]) -> bytes:
    return pa.schema(list(types.items())).serialize().to_pybytes() if types else b""


def _show(output: Output, table_name: str, changed: dict[str, list[str]], *, plan_only: bool) -> None:
    output.print_json({"table": table_name, "plan_only": plan_only, **changed})
    words = {"added": "new", "widened": "wider", "nullable": "may be null"}
    lines = [f"{words[kind]}: {each}" for kind, texts in changed.items() for each in texts]
    if not lines:
        output.print_text(f"{table_name} has these columns already; nothing changes.")
        return
    for line in lines:
        output.print_text(line)
    output.print_text(f"{table_name} would change." if plan_only else f"{table_name} has changed.", fg="green")
