"""`headgate table copy`: makes a new table with the rows that another one has, or had."""

from dataclasses import asdict

import click

from headgate_cli.cluster import Access, naming_near_tables
from headgate_cli.maintenance.progress import WorkBar
from headgate_cli.options import cluster_options, storage_option, storage_settings
from headgate_cli.output import Output, counted, json_option


@click.command("copy", short_help="Copy a table's rows into a new table.")
@click.argument("name")
@click.argument("to")
@click.option("--as-of", default="", metavar="TIME", help="Rows of that time, or of a savepoint's INSTANT. [the newest commit]")
@click.option("--go-on", is_flag=True, help="Go on with a copy that broke off.")
@cluster_options(timeout_s=60.0)
@storage_option
@json_option
@click.pass_obj
def copy(output: Output, name: str, to: str, access: Access, storage: tuple[str, ...], as_of: str, go_on: bool) -> None:
    """Makes a table TO of the same columns, key, partitions, ordering and buckets, with the rows of the table NAME of one moment.

    This process reads the rows from NAME's storage and sends them through a channel, so it needs access to the storage, the right
    read on NAME, and create and write on TO. NAME goes on meanwhile. Settings, savepoints and channels are not copied. When the
    command has ended, readers see all rows.

    After a break, run it again with --go-on: all rows are sent again, of the same moment, so nobody else may have written to TO.
    Very large tables are copied faster by Spark: `headgate bulk-load`.

    \b
    Examples:
      headgate table copy flights flights_trial
      headgate table copy flights flights_before --as-of "10 minutes ago"
    """  # noqa: D301 - click wants the backspace
    moment = as_of or None
    with naming_near_tables(access, name), access.connect() as cluster, WorkBar(output, f"copying {name}") as bar:

        def progress(rows: int) -> None:
            bar.at({"rows": rows}, 0, 0, counted(rows, "row"))

        table, options = cluster.table(name), storage_settings(storage)
        done = table.copy(to, as_of=moment, go_on=go_on, storage_options=options, progress=progress)
    output.print_json({"event": "copied", **asdict(done)})
    rows = counted(done.rows, "row")
    output.print_text(f"{to} has the {rows} of {name}{f' as of {done.as_of}' if done.as_of else ''}.", fg="green")
