"""Channels that nobody uses any more when an ownership begins; ``core/channel_retention.py`` has those of later."""

from headgate_tables.face.owner import Ownership


def forget_idle_channels(table: Ownership, before_ms: int) -> None:
    """Forgets channels whose last commit is older (rule CH5). Call it before the core is made, when no channel has a hold."""
    idle = [name for name, record in table.channels.items() if record.time < before_ms]
    if idle:
        table.win_offsets({}, forget=idle)
