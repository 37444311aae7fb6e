"""`headgate clean` and `headgate archive`: what the services do by themselves, now."""

from typing import Any

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.where import ask_owner, is_address, opened, plain, table_command
from headgate_cli.output import Output, size


@click.command("clean")
@click.option("--plan-only", is_flag=True, help="Say what would be removed, and change nothing.")
@table_command
def clean(output: Output, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool) -> None:
    """Removes file slices of TABLE (a name, or an address with a slash) that newer ones have replaced.

    What stays is said by the table's settings: `headgate configure TABLE`, hoodie.clean.… and headgate.clean.min.age. Savepoints,
    pending compactions and readers hold files back, too. The services clean by themselves; this only does it now.

    \b
    Examples:
      headgate clean flights --plan-only
      headgate clean ./headgate-data/flights
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with opened(table_name, storage) as table:
            done = table.clean(plan_only=plan_only)
        record: dict[str, Any] = {
            "instant": done.instant,
            "files": len(done.files),
            "bytes": done.bytes,
            "earliest": done.earliest,
        }
    else:
        record = plain(ask_owner(access, table_name, lambda owner: owner.clean(plan_only=plan_only)))
    output.emit(record)
    would = "would be" if plan_only else "were"
    output.say(f"{record['files']:,} files with {size(record['bytes'])} {would} removed.")
    if record["earliest"]:
        output.say(f"The table can be read as of {record['earliest']} and later.")


@click.command("archive")
@click.option("--plan-only", is_flag=True, help="Say what would be moved, and change nothing.")
@table_command
def archive(output: Output, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool) -> None:
    """Moves the oldest instants of TABLE's timeline (a name, or an address with a slash) into its history.

    How many stay is said by the settings hoodie.keep.min.commits and hoodie.keep.max.commits; what is archived cannot be read as
    of any more. Readers list fewer files then. The services do it by themselves; this only does it now. Instants whose rows are
    in no base file yet stay: `headgate compact TABLE` first.

    \b
    Examples:
      headgate archive flights --plan-only
      headgate archive s3://lake/flights
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        with opened(table_name, storage) as table:
            done = table.archive(plan_only=plan_only)
        record: dict[str, Any] = {"instants": list(done.instants), "left": done.left}
    else:
        record = plain(ask_owner(access, table_name, lambda owner: owner.archive(plan_only=plan_only)))
    output.emit(record)
    moved = record["instants"]
    would = "would be" if plan_only else "were"
    span = f" ({moved[0]} to {moved[-1]})" if moved else ""
    output.say(f"{len(moved):,} instants{span} {would} archived, {record['left']:,} stay.")
