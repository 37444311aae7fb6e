"""What a user should do about the state of a cluster, where no alarm says it."""

from typing import Final

from headgate_cli.status.figures import Found

_LONG_WAIT_S: Final = 60.0
"""Rows that wait for so long wait for something: a checkpoint without an alarm takes seconds, by its interval."""

_NO_REDIS: Final = (
    "Redis does not answer: tables keep their owners, but no coordinator takes over from one that dies. Start Redis, or correct "
    "the coordinators' setting redis."
)
_SILENT: Final = (
    "does not answer: its tables may be missing here. Look into its log; another coordinator takes them over when its lease ends."
)
_NO_COMPACTORS: Final = "no compactors: log files pile up, and reads get slower."
_UNOWNED: Final = (
    "no coordinator owns it just now, so it takes no rows. One takes it by itself within seconds; if this stays, look into the "
    "coordinators' logs."
)
_NOT_TOLD: Final = (
    "did not tell of it, so it may take no rows. If that coordinator is gone, another one takes it by itself within seconds; if "
    "this stays, look into the coordinators' logs."
)
_LONG_WAIT: Final = "Unless checkpoint_interval is that long, something holds the checkpoint up:"


def advice(found: Found) -> list[str]:
    """Sentences: what is wrong and what helps. ``found``: as of ``gather``."""
    return [*_about_processes(found), *(text for table in found["tables"] for text in _about_table(table))]


def _about_processes(found: Found) -> list[str]:
    coordinators = ",".join(each["address"] for each in found["coordinators"])
    said = []
    if not found["redis_reachable"]:
        said.append(_NO_REDIS)
    silent = [each for each in found["coordinators"] if not each["answers"]]
    said += [f"coordinator {each['name']} at {each['address']} {_SILENT}" for each in silent]
    if not [writer for writer in found["writers"] if not writer["leaving"]]:
        said.append(f"no writers: the cluster takes no rows. Start one: `headgate writer --coordinator {coordinators}`")
    if not found["compactors"]:
        said.append(f"{_NO_COMPACTORS} Start one: `headgate compactor --coordinator {coordinators}`")
    return said


def _about_table(table: Found) -> list[str]:
    if table["alarms"]:
        return []  # they say it better
    if table["state"] == "unowned":
        return [f"{table['name']}: {_UNOWNED}"]
    if table["state"] == "elsewhere":
        return [f"{table['name']}: its owner {table['owner']} {_NOT_TOLD}"]
    if (waiting := table["waiting_seconds"]) > _LONG_WAIT_S:
        owner = table["owner"] or "its owner"
        return [f"{table['name']}: rows wait for {waiting:.0f} s. {_LONG_WAIT} look into the log of {owner}."]
    return []
