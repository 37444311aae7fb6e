"""`headgate status`: the tables of a cluster with rate, freshness and lag, its processes, alarms, and what to do about them."""

import shutil
import sys
import threading

import click

import headgate
from headgate_cli.cluster import Access
from headgate_cli.options import cluster_options
from headgate_cli.output import Output, json_option
from headgate_cli.screen import Screen, printed
from headgate_cli.status.gathering import gather
from headgate_cli.status.showing import show
from headgate_tables.system import System


@click.command("status", short_help="Show tables, processes and alarms.")
@click.argument("table_name", metavar="[TABLE]", required=False)
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C; as much as fits the screen, alarms first.")
@click.option("--interval", default=1.0, show_default=True, type=click.FloatRange(0.1), help="Seconds, for --watch.")
@cluster_options()
@json_option
@click.pass_obj
def status(output: Output, /, table_name: str | None, watch: bool, interval: float, access: Access) -> None:
    """Shows tables, coordinators, writers, compactors, running compactions and alarms; with TABLE that table and its channels.

    `rows/s` became queryable over the last minute, or the last checkpoint if it took longer. `freshness` is how long the oldest
    rows wait that readers do not see yet; idle: none wait. `lag` is the most offsets that a channel has sent and that are not
    committed. `checkpoint s`, `files` and `bytes` are the cost of the last checkpoint: its seconds from barrier to published, and
    the data files that it wrote. With a longer checkpoint_interval, checkpoints are rarer and each costs more.

    \b
    Examples:
      headgate status
      headgate status flights
      headgate status --watch --interval 5
      headgate status --json | jq '.tables[] | {name, rows_per_second, waiting_seconds, lag, alarms}'
    """  # noqa: D301 - click wants the backspace
    if not watch:
        _print(output, access, table_name)
    elif output.json or not sys.stdout.isatty():
        _repeat(output, access, table_name, interval)
    else:
        _watch(access, table_name, interval)


def _print(output: Output, access: Access, table_name: str | None) -> None:
    show(output, gather(access, table_name), System.real().clock.now_ms())


def _print_or_say(output: Output, access: Access, table_name: str | None) -> None:
    """A cluster that does not answer now may do so at the next refresh."""
    try:
        _print(output, access, table_name)
    except headgate.RetryLater as error:
        output.print_text(f"{error} Trying again.", fg="yellow")


def _repeat(output: Output, access: Access, table_name: str | None, interval: float) -> None:
    pause = threading.Event()
    while True:
        _print_or_say(output, access, table_name)
        sys.stdout.flush()
        pause.wait(interval)


def _watch(access: Access, table_name: str | None, interval: float) -> None:
    pause = threading.Event()
    with Screen(sys.stdout) as screen:
        while True:
            window = shutil.get_terminal_size()
            output = Output(json=False, width=window.columns)
            screen.show(printed(lambda output=output: _print_or_say(output, access, table_name)), window)  # type: ignore[misc]
            pause.wait(interval)
