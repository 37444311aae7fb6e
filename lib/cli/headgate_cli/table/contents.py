"""`headgate table timeline` and `files`: what a table's storage holds."""

import click

from headgate_cli.cluster import Access
from headgate_cli.options import NAME_OR_URL, cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table import storage as stored
from headgate_cli.table.location import locate_table


@click.command("timeline", short_help="List instants.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(0), help="Show the newest N instants; 0: all.")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def timeline(output: Output, table_name: str, limit: int, access: Access, storage: tuple[str, ...]) -> None:
    """Lists the instants of TABLE, oldest first: completed ones with what they wrote, and pending ones.

    \b
    Examples:
      headgate table timeline flights --limit 5
      headgate table timeline s3://lake/prod/flights
    """  # noqa: D301 - click wants the backspace
    output.print_records(stored.timeline(locate_table(table_name, access, storage), limit), empty="no commits yet")


@click.command("files", short_help="List file slices.", epilog=NAME_OR_URL)
@click.argument("table_name", metavar="TABLE")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def files(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> None:
    """Lists the file slices of TABLE, with base file and number of log files.

    \b
    Examples:
      headgate table files flights
      headgate table files flights --json | jq .log_files
    """  # noqa: D301 - click wants the backspace
    shown = ["partition", "file_group", "base_instant", "base_file", "logs"]
    output.print_records(stored.files(locate_table(table_name, access, storage)), shown, empty="no files yet")
