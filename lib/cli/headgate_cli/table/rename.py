"""`headgate table rename`: gives a table another name."""

import click

from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner
from headgate_cli.options import cluster_options
from headgate_cli.output import Output, json_option


@click.command("rename", short_help="Give a table another name.")
@click.argument("name")
@click.argument("to")
@cluster_options(timeout_s=60.0)
@json_option
@click.pass_obj
def rename(output: Output, name: str, to: str, access: Access) -> None:
    """Gives the table NAME the name TO. Rows, savepoints, channels and settings stay, and so does its folder.

    Producers get TableRenamedError, which says the new name: they open their channels by it, and go on at their offsets. Readers
    by address notice nothing. NAME is free for another table then. It takes the right admin on NAME, and create on TO.

    \b
    Examples:
      headgate table rename flights us.flights
    """  # noqa: D301 - click wants the backspace
    with access.connect() as cluster:
        uuid = cluster.table(name).info.uuid
    call_owner(access, name, lambda owner: owner.rename(uuid, to))
    output.print_json({"name": to, "before": name})
    output.print_text(f"{name} is {to} now.", fg="green")
