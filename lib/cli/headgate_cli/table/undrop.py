"""`headgate table undrop`: brings a dropped table back, as long as its files are kept."""

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner
from headgate_cli.options import cluster_options
from headgate_cli.output import Output, json_option


@click.command("undrop", short_help="Bring a dropped table back.")
@click.argument("name")
@cluster_options(timeout_s=60.0)
@json_option
@click.pass_obj
def undrop(output: Output, name: str, access: Access) -> None:
    """Brings the table NAME back that `headgate table drop` has dropped, with its rows, savepoints and channels.

    It takes rows again after some seconds: producers open their channels again, and go on at the offsets of the drop. A table
    that was not dropped stays as it is. `headgate table list --dropped` shows what can be brought back, and until when.

    \b
    Examples:
      headgate table undrop flights
    """  # noqa: D301 - click wants the backspace
    done = call_owner(access, name, lambda owner: owner.undrop())
    output.print_json({"name": name, "undropped": done.undropped})
    output.print_text(f"{name} is back." if done.undropped else f"{name} was not dropped.", fg="green")
