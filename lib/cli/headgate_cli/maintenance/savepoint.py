"""`headgate savepoint` and `headgate restore`: keep a state of a table, and take the table back to it."""

import datetime
from dataclasses import asdict
from typing import Any, TypedDict, Unpack

import click
from google.protobuf.message import Message

from headgate.maintenance import Maintenance
from headgate_cli.cluster import Access
from headgate_cli.confirming import confirm
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.output import Output, counted

_DEFINITION = "Alterations of columns and rescales since then are undone, too."


class Request(TypedDict):
    """What a call of ``headgate savepoint`` asks for; at most one of them."""

    comment: str
    remove: str
    listing: bool


@click.command("savepoint", short_help="Keep the newest commit of a table.")
@click.option("--comment", default="", help="Its purpose; stored in the savepoint.")
@click.option("--remove", metavar="INSTANT", default="", help="Remove this savepoint; cleaning deletes its files later.")
@click.option("--list", "listing", is_flag=True, help="List the savepoints; change nothing.")
@click.option("--plan-only", is_flag=True, help="The same as --list.")
@table_command
def savepoint(
    output: Output, /, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool, **asked: Unpack[Request]
) -> None:
    """Keeps the newest commit of TABLE (a name, or an address with a slash), with the channels' offsets, for `headgate restore`.

    Cleaning keeps its files, so they take space until the savepoint is removed. Other Hudi programs see it as a savepoint.
    --list shows when and by whom each was made, what for, and how many commits a restore to it would undo.

    \b
    Examples:
      headgate savepoint flights --comment 'before the backfill'
      headgate savepoint flights --list
      headgate savepoint flights --remove 20260711133014123
    """  # noqa: D301 - click wants the backspace
    asked["listing"] |= plan_only
    if sum(map(bool, asked.values())) > 1:
        raise click.UsageError("--comment, --remove and --list exclude each other")
    if is_address(table_name):
        record = _in_this_process(table_name, storage, **asked)
    else:
        record = fields_of(call_owner(access, table_name, lambda owner: _by_owner(owner, **asked)))
    output.print_json(record)
    if record["instant"]:
        output.print_text(f"{record['instant']}: {'removed' if asked['remove'] else 'saved'}.", fg="green")
    if not output.json:
        _show(output, table_name, record)


def _in_this_process(address: str, storage: tuple[str, ...], *, comment: str, remove: str, listing: bool) -> dict[str, Any]:
    with open_address(address, storage) as table:
        if listing:
            instant = ""
        elif remove:
            table.remove_savepoint(instant := remove)
        else:
            instant = table.savepoint(comment)
        details = [asdict(each) for each in table.describe_savepoints()]
        return {"instant": instant, "savepoints": [each["instant"] for each in details], "details": details}


def _show(output: Output, table_name: str, record: dict[str, Any]) -> None:
    rows = [
        {
            "savepoint": each["instant"],
            "saved at (UTC)": _time(each["saved_ms"]),
            "by": each["saved_by"] or None,
            "commits since": each["newer_commits"],
            "comment": each["comment"] or None,
        }
        for each in record["details"]
    ]
    output.print_records(rows, empty="no savepoints")
    if rows:
        newest = rows[-1]["savepoint"]
        output.print_text(
            f"A restore undoes the commits since then for good, with their rows; producers send again what they still have. "
            f"What would go: headgate restore {table_name} {newest} --plan-only"
        )


def _time(ms: int) -> str | None:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S") if ms else None


async def _by_owner(owner: Maintenance, *, comment: str, remove: str, listing: bool) -> Message:
    if listing:
        return await owner.list_savepoints()
    return await (owner.remove_savepoint(remove) if remove else owner.savepoint(comment))


@click.command("restore", short_help="Take a table back to a savepoint.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--plan-only", is_flag=True, help="Show what would be undone; change nothing.")
@table_command
@click.argument("instant")
def restore(
    output: Output, /, table_name: str, instant: str, access: Access, storage: tuple[str, ...], yes: bool, plan_only: bool
) -> None:
    """Takes TABLE (a name, or an address with a slash) back to the savepoint INSTANT. Undoes later commits for good.

    Columns and numbers of buckets are those of then, too: what `headgate table alter` and `rescale` did since is undone.

    The producers' channels end with TableRestoredError; when they open them again, their committed offset is the older one. Rows
    that are not committed yet are dropped. Stop the producers first if they must not send the same rows again.

    \b
    Examples:
      headgate savepoint flights --list
      headgate restore flights 20260711133014123 --plan-only
      headgate restore flights 20260711133014123 --yes
    """  # noqa: D301 - click wants the backspace
    planned = _restore(table_name, instant, access, storage, plan_only=True)
    if plan_only:
        output.print_json(planned)
        output.print_text(f"Would be undone: {_commits(planned)}. {_DEFINITION}")
        return
    if not yes:
        confirm(
            output, f"Take {table_name} back to {instant}? This undoes later commits for good: {_commits(planned)}. {_DEFINITION}"
        )
    record = _restore(table_name, instant, access, storage)
    output.print_json(record)
    output.print_text(f"{table_name} is as it was at {instant}. Undone: {_commits(record)}.", fg="green")


def _restore(
    table_name: str, instant: str, access: Access, storage: tuple[str, ...], *, plan_only: bool = False
) -> dict[str, Any]:
    if not is_address(table_name):
        return fields_of(call_owner(access, table_name, lambda owner: owner.restore(instant, plan_only=plan_only)))
    with open_address(table_name, storage) as table:
        done = table.restore(instant, plan_only=plan_only)
    return {"instant": done.instant, "undone": list(done.undone), "files": done.files, "cancelled_plans": done.plans}


def _commits(record: dict[str, Any]) -> str:
    undone = record["undone"]
    if len(undone) >= 5:
        return counted(len(undone), "commit")
    return f"{', '.join(undone) or 'nothing'} ({counted(record['files'], 'file')})"
