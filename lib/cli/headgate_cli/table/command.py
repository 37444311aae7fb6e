"""`headgate table …`."""

from collections.abc import Mapping

import click

from headgate_cli.lazy_group import LazyGroup, Place


class _TableCommands(LazyGroup):
    places: Mapping[str, Place] = {
        "create": Place("headgate_cli.table.create:create", "Create a table."),
        "list": Place("headgate_cli.table.definitions:list_tables", "List tables."),
        "describe": Place("headgate_cli.table.definitions:describe", "Show definition and columns."),
        "scan": Place("headgate_cli.table.scan:scan", "Show or export rows."),
        "timeline": Place("headgate_cli.table.contents:timeline", "List instants."),
        "files": Place("headgate_cli.table.contents:files", "List file slices."),
        "channels": Place("headgate_cli.table.channels:channels", "List channels with their offsets."),
        "slice": Place("headgate_cli.table.slices:slice_", "Set file slices aside, readmit them."),
        "alter": Place("headgate_cli.table.alter:alter", "Add columns, widen types."),
        "rescale": Place("headgate_cli.table.rescale:rescale", "Give a table another number of buckets."),
        "delete": Place("headgate_cli.table.delete:delete", "Delete the rows that a condition selects."),
        "delete-partitions": Place("headgate_cli.table.delete_partitions:delete_partitions", "Remove all rows of partitions."),
        "expire": Place("headgate_cli.table.expire:expire", "Remove partitions past their time."),
        "truncate": Place("headgate_cli.table.truncate:truncate", "Remove all rows."),
        "copy": Place("headgate_cli.table.copy:copy", "Copy a table's rows into a new table."),
        "rename": Place("headgate_cli.table.rename:rename", "Give a table another name."),
        "drop": Place("headgate_cli.table.drop:drop", "Delete a table, now or later."),
        "undrop": Place("headgate_cli.table.undrop:undrop", "Bring a dropped table back."),
        "adopt": Place("headgate_cli.maintenance.adopt:adopt", "Adopt another program's changes."),
        "upgrade": Place("headgate_cli.table.versions:upgrade", "Bring a table to version 9."),
        "downgrade": Place("headgate_cli.table.versions:downgrade", "Bring a table back to version 8."),
    }


@click.group("table", cls=_TableCommands, short_help="Create, inspect and read tables.")
def table() -> None:
    """Create, inspect and read tables."""
