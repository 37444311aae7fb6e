"""`headgate table channels`: how far the producers of a table have come."""

import datetime
from collections.abc import Sequence

import click

from headgate.maintenance import Maintenance
from headgate.operating import ChannelSummary, channel_summary
from headgate_cli.cluster import Access
from headgate_cli.maintenance.target import call_owner, is_address, open_address, table_command
from headgate_cli.output import Output, Record


@click.command("channels", short_help="List channels with their offsets.")
@click.option("--prefix", default="", help="Only channels whose names begin with it.")
@table_command
def channels(output: Output, /, table_name: str, access: Access, storage: tuple[str, ...], prefix: str) -> None:
    """Lists the channels of TABLE (a name, or an address with a slash) with the offsets up to which their rows are committed.

    A producer that starts again goes on behind this offset. Each new producer of a channel has a higher incarnation.

    \b
    Examples:
      headgate table channels flights
      headgate table channels flights --prefix loader- --json | jq 'select(.committed_offset < 1000) | .name'
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        found = _in_this_process(table_name, storage, prefix)
    else:
        found = call_owner(access, table_name, lambda owner: _by_owner(owner, prefix))
    if output.json:
        output.print_records([_record(each) for each in found])
        return
    rows = [
        {
            "channel": each.name,
            "committed offset": each.committed_offset,
            "incarnation": each.incarnation,
            "principal": each.principal,
            "last used": each.last_used.isoformat(" ", "seconds"),
        }
        for each in found
    ]
    output.print_records(rows, empty="no channels")


def _record(each: ChannelSummary) -> Record:
    """For programs, as the owner's answer has it."""
    return {
        "name": each.name,
        "committed_offset": each.committed_offset,
        "incarnation": each.incarnation,
        "principal": each.principal,
        "last_used_ms": round(each.last_used.timestamp() * 1000),
    }


def _in_this_process(address: str, storage: tuple[str, ...], prefix: str) -> Sequence[ChannelSummary]:
    with open_address(address, storage) as table:
        return [
            ChannelSummary(
                name=name,
                committed_offset=each.offset,
                incarnation=each.incarnation,
                principal=each.principal,
                last_used=datetime.datetime.fromtimestamp(each.time / 1000, datetime.UTC),
            )
            for name, each in sorted(table.channels.items())
            if name.startswith(prefix)
        ]


async def _by_owner(owner: Maintenance, prefix: str) -> Sequence[ChannelSummary]:
    return [channel_summary(each) async for each in owner.list_channels(prefix)]
