"""Figures of tables and compactions as people read them."""

from typing import Any

from headgate_cli.output import size

Found = dict[str, Any]
"""What coordinators say of a cluster, a table or an operation, as --json shows it."""


def table_row(table: Found, now_ms: int) -> Found:
    """A table's columns, the most important first: a terminal may show only some."""
    return {
        "table": table["name"],
        "state": table["state"],
        "rows/s": rate(table),
        "freshness": freshness(table),
        "lag": lag(table),
        "channels": table["channels"],
        "last commit": span(now_ms, table["last_commit_ms"]) if table["last_commit_ms"] else None,
        "uncommitted": size(table["uncommitted_bytes"]),
        "compacting": _compacting(table),
        "checkpoint s": table["checkpoint_seconds"],
        "files": table["checkpoint_files"],
        "bytes": size(table["checkpoint_bytes"]),
        "owner": table["owner"],
        "epoch": table["epoch"],
        "checkpoint": f"{table['generation']}.{table['checkpoint']}",
        "last instant": table["last_instant"] or None,
    }


def rate(table: Found) -> int | None:
    """Rows a second; None where no owner says it."""
    return round(table["rows_per_second"]) if table["state"] == "owned" else None


def lag(table: Found) -> int | None:
    """Offsets of the channel with the most; None where no owner says it."""
    return table["lag"] if table["state"] == "owned" else None


def freshness(table: Found) -> str | None:
    """How long the oldest rows wait that readers do not see; None where no owner says it."""
    if table["state"] != "owned":
        return None
    return f"{table['waiting_seconds']:.1f} s" if table["waiting_seconds"] else "idle"


def span(now_ms: int, then_ms: int) -> str:
    """The time between, in the unit that leaves at most two digits or so."""
    seconds = max(0, now_ms - then_ms) / 1000
    for unit, length, most in (("s", 1, 100), ("min", 60, 100), ("h", 3_600, 48)):
        if seconds < most * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def _compacting(table: Found) -> str | None:
    running, queued = len(table["operations"]), table["operations_queued"]
    return f"{running} + {queued} wait" if queued else str(running) if running else None


def operation_row(table: Found, operation: Found) -> Found:
    """A running operation's columns."""
    whole = operation["of_bytes"]
    return {
        "compacting": f"{table['name']} {operation['partition']}".strip(),
        "file group": operation["file_id"],
        "at": operation["host"] or operation["compactor"],
        "try": operation["attempt"],
        "read": f"{size(operation['bytes_done'])} of {size(whole)}",
        "%": min(100, round(100 * operation["bytes_done"] / whole)) if whole else None,
        "rows": operation["rows_done"],
        "s": round(operation["seconds"], 1),
    }
