"""`headgate table expire`: shows which partitions are past their time, and removes them from a table without a cluster."""

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.target import is_address
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, counted, json_option
from headgate_cli.table.location import locate_table, open_unowned, take_over_option
from headgate_tables.face.log import format_time
from headgate_tables.face.results import ExpireResult


@click.command("expire", short_help="Remove partitions past their time.")
@click.argument("table_name", metavar="TABLE")
@click.option("--dry-run", is_flag=True, help="Show which partitions are past their time, and since when; change nothing.")
@click.option("--ttl", default="", metavar="30d", help="In place of the setting headgate.ttl, for this command alone.")
@click.option("--by", default="", metavar="COLUMN", help="In place of headgate.ttl.by: last-write or a partition column.")
@take_over_option
@cluster_options(timeout_s=60.0)
@storage_option
@json_option
@click.pass_obj
def expire(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    dry_run: bool,
    ttl: str,
    by: str,
    take_over: bool,
) -> None:
    """Removes partitions of TABLE (a name, or an address with a slash) that are older than its setting headgate.ttl says.

    A cluster does it by itself; with a name there is --dry-run, which also tries values before they are set. One call removes at
    most 1,000 partitions, in one commit. Files stay until the table is cleaned.

    \b
    Examples:
      headgate table expire flights --dry-run --ttl 30d --by day
      headgate table expire ./flights
    """  # noqa: D301 - click wants the backspace
    if not (dry_run or take_over or is_address(table_name)):
        raise CommandError(
            f"partitions of {table_name} are removed by the cluster itself",
            fix="Set headgate.ttl with `headgate configure`, and look with --dry-run at what goes.",
            code=ExitCode.USAGE,
        )
    location = locate_table(table_name, access, storage)
    if dry_run:
        with location.open() as table:
            _show(output, table.expire_partitions(dry_run=True, ttl=ttl, by=by), dry_run=True)
        return
    with open_unowned(location, take_over=take_over) as table:
        _show(output, table.expire_partitions(ttl=ttl, by=by), dry_run=False)


def _show(output: Output, found: ExpireResult, *, dry_run: bool) -> None:
    records = [{"partition": path, "expired": _time(end)} for path, end in found.expired.items()]
    following = _time(found.next_ms) if found.next_ms is not None else None
    output.print_json(
        {
            "partitions": records,
            "left": found.left,
            "undated": found.undated,
            "next": following,
            "instant": found.instant,
            "replaced": found.replaced,
        }
    )
    if output.json:
        return
    if records:
        output.print_table(["partition", "expired"], [list(each.values()) for each in records])
    count = len(records)
    output.print_text(f"{counted(count, 'partition')} {'would be' if dry_run else 'were'} removed.", fg="green")
    if found.left:
        output.print_text(f"{found.left:,} more are past their time: a call takes {count:,}.")
    if found.undated:
        output.print_text(f"{found.undated:,} have a value that is no date, and never expire.")
    if following:
        output.print_text(f"The next one expires {following}.")


def _time(ms: int) -> str:
    """UTC, to the second; a time that no calendar has is the last one."""
    digits = format_time(min(ms, _LAST_MS))
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}"


_LAST_MS = 253_402_300_799_999
"""9999-12-31 23:59:59, in milliseconds since the epoch."""
