"""Earlier loads of a file: one that has changed since is never loaded without a word about it."""

from collections.abc import Callable, Collection

import headgate
from headgate.errors import PermissionDeniedError
from headgate_cli.load.identity import LoadIdentity
from headgate_cli.output import Output
from headgate_cli.reading.source import refused

_STAY = "rows that it does not have any more stay"


def say_changed(
    output: Output, table: headgate.Table, file: str, load: LoadIdentity, own: Callable[[], Collection[str]], verb: str
) -> None:
    """Says, for a file of which nothing is committed, that it has changed since it was loaded, if it has.

    ``own``: channels of other files of the same command, which may have the same name; ``verb``: upserts or deletes.
    """
    try:
        found = [each for each in table.channels(load.family) if load.content_of(each.name) and each.committed_offset]
    except PermissionDeniedError:
        output.print_json({"event": "unseen", "file": file})
        output.print_text(
            f"{file}: whether it has changed since an earlier load cannot be seen without the right operate.", fg="yellow"
        )
        return
    if not found:
        return
    ours = own()
    if not (others := [each for each in found if each.name not in ours]):
        return
    last = max(others, key=lambda each: (load.content_of(each.name) == load.content, each.last_used))
    same = load.content_of(last.name) == load.content
    record = {"channel": last.name, "rows": last.committed_offset, "why": "options" if same else "content"}
    output.print_json({"event": "changed", "file": file, **record})
    since = f"since it was loaded as channel {last.name} ({last.committed_offset:,} rows, {last.last_used:%Y-%m-%d %H:%M} UTC)"
    what = f"is read in another way than when {since.removeprefix('since ')}" if same else f"has changed {since}"
    output.print_text(f"{file} {what}: it is loaded whole, as {verb}; {_STAY}.", fg="yellow")


def claim(table: headgate.Table, file: str, channel: str, load: LoadIdentity, committed: int, *, appended: bool) -> None:
    """Remembers that ``channel``, given by its name, is of this file. ``committed``: rows that are committed through it.

    Raises CommandError if it is of another one: the offset would skip rows of this file that were never loaded. ``appended``: the
    file has only grown.
    """
    with table.channel(load.marker(channel)) as marker:
        if marker.committed_offset:
            return
        if committed and not appended:
            raise refused(
                f"{file} is not the file that was loaded as channel {channel}, or has changed since, or is read in another way: "
                f"its first {committed:,} rows would be taken for loaded",
                "Leave --channel out, or give a new one: the file is loaded whole, as upserts. Or, if it has only grown: "
                f"--appended loads what is behind row {committed:,}.",
            )
        marker.skip(1)
        marker.flush("queryable")
