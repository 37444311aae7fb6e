"""What a table's handle knows of its fullest slices and of those that cannot be compacted."""

from headgate_coordinator.core import events, stuck_slices
from headgate_tables.face.owner import Table, Upkeep


def read_slice_figures(table: Table) -> events.SliceFigures:
    """Returns the figures of the fullest slices, which the table's handle knows without I/O, and the limits of its settings."""
    settings, figures = table.settings, table.largest_slice()
    limits = (settings.max_log_files, settings.max_log_bytes)
    loads = stuck_loads(table)
    refused = stuck_slices.refused_slices(table.name, loads, settings)
    if figures is None:
        return events.SliceFigures(0, 0, *limits, counted=False, refused=refused, stuck=len(loads))
    return events.SliceFigures(figures.log_files, figures.log_bytes, *limits, refused=refused, stuck=len(loads))


def stuck_loads(table: Upkeep) -> list[stuck_slices.StuckLoad]:
    """Returns the slices that cannot be compacted, with the logs that wait in them."""
    found = ((each, table.log_size_of(each)) for each in table.stuck)
    return [stuck_slices.StuckLoad(each, *((f.log_files, f.log_bytes) if f else (0, 0))) for each, f in found]
