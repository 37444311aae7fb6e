"""`headgate table adopt`: what another program did to a table becomes the table's own."""

from dataclasses import fields
from typing import Any

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.maintenance.where import ask_owner, is_address, opened, table_command
from headgate_cli.output import Output
from headgate_tables.hudi.services.results import AdoptResult


@click.command("adopt")
@click.option(
    "--buckets", default=0, type=click.IntRange(0), help="Buckets of a table that was not made here; nothing in it says."
)
@click.option("--roll-back", is_flag=True, help="Take back what the other program has begun to write, and not finished.")
@click.option(
    "--future-times", is_flag=True, help="Go on above the table's own times, which a wrong clock has set in the future."
)
@table_command
def adopt(
    output: Output,
    /,
    table_name: str,
    access: Access,
    storage: tuple[str, ...],
    buckets: int,
    roll_back: bool,
    future_times: bool,
) -> None:
    """Takes what another program did to TABLE as its own, so that it takes rows again.

    A table that Spark or another writer has written to is quarantined: read-only here, `headgate status` says why. Look at what
    that program did, make sure that it does not run any more, then adopt. Its commits count, its pending compactions are done
    here; a write of it that is still pending is refused, or taken back with --roll-back.

    A table of another program (version 8, bucket index) whose folder lies under the store's root becomes a table of the cluster:
    give the folder's name and --buckets.

    --future-times is for a table whose times are ahead of the clock ("the table has already issued …"), and adopts nothing: new
    commits get times right above the newest one, until real time has caught up. Readers keep the order of commits; operations.md
    says what they show of such times.

    \b
    Examples:
      headgate table adopt flights
      headgate table adopt old-flights --buckets 16
      headgate table adopt s3://lake/old-flights --buckets 16
    """  # noqa: D301 - click wants the backspace
    if future_times and (buckets or roll_back):
        raise CommandError(
            "--future-times adopts nothing, so it goes with neither --buckets nor --roll-back",
            fix="Give it alone, and adopt with a command of its own.",
            code=ExitCode.USAGE,
        )
    if future_times:
        _go_on(output, table_name, access, storage)
        return
    done: Any  # the owner's answer has the same fields
    if is_address(table_name):
        with opened(table_name, storage) as table:
            done = table.adopt(buckets=buckets or None, roll_back=roll_back)
    else:
        done = ask_owner(access, table_name, lambda owner: owner.adopt(buckets=buckets, roll_back=roll_back))
    record = {field.name: list(getattr(done, field.name)) for field in fields(AdoptResult)}
    output.emit(record)
    told = {
        "completed": "instants of the other program adopted",
        "removed": "instants that it took away",
        "plans": "compactions that it left to do",
        "finished_plans": "of our compactions that it has done",
        "rolled_back": "pending writes of it taken back",
        "archived": "instants that it archived",
        "savepoints": "savepoints of it",
    }
    for name, what in told.items():
        if record[name]:
            output.say(f"{len(record[name]):,} {what}: {', '.join(record[name])}")
    output.say(f"{table_name} takes rows." if any(record.values()) else "There was nothing to adopt.", fg="green")


def _go_on(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    if is_address(table_name):
        with opened(table_name, storage) as table:
            floor = table.accept_future_times()
    else:
        floor = ask_owner(access, table_name, lambda owner: owner.accept_future_times())
    output.emit({"goes_on_from": floor})
    output.say(f"{table_name} goes on from {floor}." if floor else "No time of it is ahead of the clock.", fg="green")
