"""`headgate savepoint` and `headgate restore`: keep a state of a table, and go back to it."""

from typing import Any

import click

from headgate.maintenance import Maintenance
from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.where import ask_owner, is_address, opened, plain, table_command
from headgate_cli.output import Output


@click.command("savepoint")
@click.option("--comment", default="", help="What it is for; stored in the savepoint.")
@click.option("--remove", metavar="INSTANT", default="", help="End this savepoint; its files go with the next clean.")
@click.option("--list", "listing", is_flag=True, help="Only list the savepoints.")
@click.option("--plan-only", is_flag=True, help="The same as --list: say what there is, and change nothing.")
@table_command
def savepoint(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...], **asked: Any) -> None:
    """Keeps the newest commit of TABLE (a name, or an address with a slash): no clean removes it, `headgate restore` goes back.

    Channel offsets are kept with it. Its files take space until it is removed. Other Hudi programs see it as a savepoint, too.

    \b
    Examples:
      headgate savepoint flights --comment 'before the backfill'
      headgate savepoint flights --list
      headgate savepoint flights --remove 20260711133014123
    """  # noqa: D301 - click wants the backspace
    asked["listing"] |= asked.pop("plan_only")
    if sum(map(bool, asked.values())) > 1:
        raise click.UsageError("--comment, --remove and --list are three different things")
    if is_address(table_name):
        record = _here(table_name, storage, **asked)
    else:
        record = plain(ask_owner(access, table_name, lambda owner: _there(owner, **asked)))
    output.emit(record)
    if record["instant"]:
        output.say(f"{record['instant']}: {'removed' if asked['remove'] else 'saved'}.", fg="green")
    output.say(f"Savepoints: {', '.join(record['savepoints']) or 'none'}.")


def _here(address: str, storage: tuple[str, ...], *, comment: str, remove: str, listing: bool) -> dict[str, Any]:
    with opened(address, storage) as table:
        if listing:
            instant = ""
        elif remove:
            table.remove_savepoint(instant := remove)
        else:
            instant = table.savepoint(comment)
        return {"instant": instant, "savepoints": list(table.savepoints)}


async def _there(owner: Maintenance, *, comment: str, remove: str, listing: bool) -> Any:
    if listing:
        return await owner.list_savepoints()
    return await (owner.remove_savepoint(remove) if remove else owner.savepoint(comment))


@click.command("restore")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--plan-only", is_flag=True, help="Say what would be taken back, and change nothing.")
@table_command
@click.argument("instant")
def restore(
    output: Output, /, table_name: str, instant: str, access: Access, storage: tuple[str, ...], yes: bool, plan_only: bool
) -> None:
    """Takes TABLE (a name, or an address with a slash) back to the savepoint INSTANT. Later commits are gone for good.

    Producers are told: their channels end with TableRestoredError, and opening them again says from which (older) offset to
    send. Rows that were accepted and not committed are dropped. Stop producers first if they must not send the same again.

    \b
    Examples:
      headgate savepoint flights --list
      headgate restore flights 20260711133014123 --plan-only
      headgate restore flights 20260711133014123 --yes
    """  # noqa: D301 - click wants the backspace
    planned = _restore(table_name, instant, access, storage, plan_only=True)
    if plan_only:
        output.emit(planned)
        output.say(f"To be taken back: {_commits(planned)}.")
        return
    if not yes:
        _confirm(output, f"Take {table_name} back to {instant}? What came later is gone for good then: {_commits(planned)}.")
    record = _restore(table_name, instant, access, storage)
    output.emit(record)
    output.say(f"{table_name} is as it was at {instant}. Taken back: {_commits(record)}.", fg="green")


def _restore(
    table_name: str, instant: str, access: Access, storage: tuple[str, ...], *, plan_only: bool = False
) -> dict[str, Any]:
    if not is_address(table_name):
        return plain(ask_owner(access, table_name, lambda owner: owner.restore(instant, plan_only=plan_only)))
    with opened(table_name, storage) as table:
        done = table.restore(instant, plan_only=plan_only)
    return {"instant": done.instant, "undone": list(done.undone), "files": done.files, "cancelled_plans": done.plans}


def _commits(record: dict[str, Any]) -> str:
    undone = record["undone"]
    return f"{', '.join(undone) or 'nothing'} ({record['files']:,} files)" if len(undone) < 5 else f"{len(undone):,} commits"


def _confirm(output: Output, question: str) -> None:
    if output.json:
        raise CommandError("restore asks for confirmation", fix="Add --yes.", code=ExitCode.USAGE)
    click.confirm(question, abort=True, err=True)
