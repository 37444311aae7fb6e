"""`headgate clean` and `headgate archive`: run now what the table services do by themselves."""

from typing import Any

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.output import Output, size


@click.command("clean", short_help="Delete replaced file slices now.")
@click.option("--plan-only", is_flag=True, help="Show what would be removed; change nothing.")
@table_command
def clean(output: Output, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool) -> None:
    """Removes replaced file slices of TABLE (a name, or an address with a slash).

    The settings hoodie.clean.… and headgate.clean.min.age say how long they stay: `headgate configure TABLE`. Savepoints, pending
    compactions and readers' leases keep files too. Tables are cleaned automatically; this command does it now.

    \b
    Examples:
      headgate clean flights --plan-only
      headgate clean ./headgate-data/flights
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            done = table.clean(plan_only=plan_only)
        record: dict[str, Any] = {
            "instant": done.instant,
            "files": len(done.files),
            "bytes": done.bytes,
            "earliest": done.earliest,
        }
    else:
        record = fields_of(call_owner(access, table_name, lambda owner: owner.clean(plan_only=plan_only)))
    output.print_json(record)
    would = "would be" if plan_only else "were"
    output.print_text(f"{record['files']:,} files with {size(record['bytes'])} {would} removed.")
    if record["earliest"]:
        output.print_text(f"Reads --as-of {record['earliest']} and later are possible.")


@click.command("archive", short_help="Move old instants into the history now.")
@click.option("--plan-only", is_flag=True, help="Show what would be moved; change nothing.")
@table_command
def archive(output: Output, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool) -> None:
    """Moves the oldest instants of TABLE's timeline (a name, or an address with a slash) into its history.

    The settings hoodie.keep.min.commits and hoodie.keep.max.commits say how many stay. A shorter timeline is faster to list, but
    reads --as-of an archived instant are not possible. Timelines are archived automatically; this command does it now. Instants
    whose rows are in no base file yet stay: run `headgate compact TABLE` first.

    \b
    Examples:
      headgate archive flights --plan-only
      headgate archive s3://lake/flights
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with open_address(table_name, storage) as table:
            done = table.archive(plan_only=plan_only)
        record: dict[str, Any] = {"instants": list(done.instants), "left": done.left}
    else:
        record = fields_of(call_owner(access, table_name, lambda owner: owner.archive(plan_only=plan_only)))
    output.print_json(record)
    moved = record["instants"]
    would = "would be" if plan_only else "were"
    span = f" ({moved[0]} to {moved[-1]})" if moved else ""
    output.print_text(f"{len(moved):,} instants{span} {would} archived, {record['left']:,} stay.")
