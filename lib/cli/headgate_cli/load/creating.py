"""The table that `headgate load --create` makes or finds."""

import headgate
from headgate_cli.load.loading import LoadOptions
from headgate_cli.options import names
from headgate_cli.reading.source import refused


def check_definition(table: headgate.TableInfo, options: LoadOptions) -> None:
    """Raises CommandError when an option of ``--create`` is given and says something else than the table that is there."""
    wanted: dict[str, tuple[object, object]] = {
        "--key": (tuple(names(options["key"])), table.key),
        "--ordering": (options["ordering"], table.ordering),
        "--partition-by": (tuple(names(options["partition_by"])), table.partition_by),
        "--buckets": (options["buckets"], table.buckets),
    }
    for option, (given, there) in wanted.items():
        if given and given != there:
            raise refused(
                f"the table {table.name} exists and differs: {option} is {_shown(there)}, not {_shown(given)}",
                f"Load into it as it is, without {option}, or create a table of another name.",
            )


def _shown(value: object) -> str:
    return (",".join(map(str, value)) if isinstance(value, tuple) else str(value or "")) or "none"
