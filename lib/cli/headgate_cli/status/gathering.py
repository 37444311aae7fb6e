"""The state of a cluster, from every coordinator that is alive."""

from dataclasses import asdict

import headgate
from headgate.maintenance import Maintenance
from headgate.status import TableStatus
from headgate_cli.cluster import Access, naming_near_tables
from headgate_cli.maintenance.target import call_owner, fields_of
from headgate_cli.status.figures import Found


def gather(access: Access, table: str | None = None) -> Found:
    """The state of the whole cluster, from every coordinator that is alive; ``table``: of this table alone, with its channels.

    Raises HeadgateError when none answers, and for a table that the caller may not see; CommandError for one that there is not.
    """
    with access.connect() as cluster:
        found = _gather(cluster)
        if table is None:
            return found
        tables = [each for each in found["tables"] if each["name"] == table] or [_of_no_owner(access, cluster, table)]
    channels = _channels(access, table) if tables[0]["state"] == "owned" else None
    return {**found, "tables": [{**tables[0], "channel_list": channels}]}


def _of_no_owner(access: Access, cluster: headgate.Headgate, name: str) -> Found:
    """A table that no coordinator lists: coordinators list what they own, and one that dies leaves its tables to others."""
    with naming_near_tables(access, name):
        cluster.table(name)
    answer = cluster.status(name)
    return _table(answer.tables[0], answer)


def _channels(access: Access, table: str) -> list[Found] | None:
    """The table's channels, those that lag most first; None for a caller who may not list them."""
    try:
        found = call_owner(access, table, _list_channels)
    except headgate.PermissionDeniedError:
        return None
    return sorted(found, key=lambda channel: (-channel["lag"], -channel["last_used_ms"]))


async def _list_channels(owner: Maintenance) -> list[Found]:
    return [fields_of(each) async for each in owner.list_channels()]


def _gather(cluster: headgate.Headgate) -> Found:
    first = cluster.status()
    tables = {found.name: _table(found, first) for found in first.tables}
    compactors = [asdict(found) for found in first.compactors]
    silent = set()
    alarms = [f"{first.coordinator}: {alarm}" for alarm in first.alarms]
    for other in first.coordinators:
        if other.name == first.coordinator:
            continue
        try:
            answer = cluster.status(coordinator=other.address)
        except headgate.RetryLater:
            silent.add(other.name)
            continue
        if answer.coordinator != other.name:  # behind a front address another one answers for one that is gone
            silent.add(other.name)
            continue
        alarms += [f"{answer.coordinator}: {alarm}" for alarm in answer.alarms]
        compactors = _with_running(compactors, answer)
        # A table's owner knows more of it than other coordinators.
        known = [found for found in answer.tables if found.state == "owned" or found.name not in tables]
        tables |= {found.name: _table(found, answer) for found in known}
    return {
        "redis_reachable": first.redis_reachable,
        "coordinators": [{**asdict(found), "answers": found.name not in silent} for found in first.coordinators],
        "writers": [asdict(found) for found in first.writers],
        "compactors": compactors,
        "tables": [tables[name] for name in sorted(tables)],
        "alarms": alarms,
    }


def _with_running(compactors: list[Found], answer: headgate.Status) -> list[Found]:
    """Adds the running operations that ``answer`` counts: a coordinator counts only those of its own tables."""
    others = {found.process: asdict(found) for found in answer.compactors}
    known = {compactor["process"] for compactor in compactors}
    for compactor in compactors:
        compactor["running"] += others.get(compactor["process"], {"running": 0})["running"]
    return [*compactors, *(found for process, found in others.items() if process not in known)]


def _table(found: TableStatus, answer: headgate.Status) -> Found:
    return asdict(found) | ({"owner": found.owner or answer.coordinator} if found.state == "owned" else {})
