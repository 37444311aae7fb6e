"""Earlier loads of a file: one that has changed since is never loaded without a word about it."""

from collections.abc import Callable, Collection

import headgate
from headgate.errors import PermissionDeniedError
from headgate_cli.load.identity import LoadIdentity, marker_of
from headgate_cli.output import Output, counted
from headgate_cli.reading.source import refused

_STAY = "rows of the other load that it does not have stay"


def say_changed(
    output: Output, table: headgate.Table, file: str, load: LoadIdentity, own: Callable[[], Collection[str]], verb: str
) -> None:
    """Says, for a file of which nothing is committed, that one of its name was loaded with other content or options, if one was.

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
    ours = own() if found else ()
    if not (others := [each for each in found if each.name not in ours]):
        return
    last = max(others, key=lambda each: (load.content_of(each.name) == load.content, each.last_used))
    same = load.content_of(last.name) == load.content
    record = {"channel": last.name, "rows": last.committed_offset, "why": "options" if same else "content"}
    output.print_json({"event": "changed", "file": file, **record})
    earlier = f"was loaded as channel {last.name} ({counted(last.committed_offset, 'row')}, {last.last_used:%Y-%m-%d %H:%M} UTC)"
    what = (
        f"is read in another way than when it {earlier}"
        if same
        else f"has changed, or is not the file of this name that {earlier}"
    )
    output.print_text(f"{file} {what}: it is loaded whole, as {verb}; {_STAY}.", fg="yellow")


def claim(table: headgate.Table, file: str, channel: str, load: LoadIdentity, committed: int, *, appended: bool) -> None:
    """Remembers that ``channel``, given by its name, is of this file alone. ``committed``: rows that are committed through it.

    Raises CommandError if it is of another one: the offset would skip rows of this file that were never loaded. ``appended``: the
    file has only grown.
    """
    with table.channel(marker_of(channel)) as marker:
        if load.is_marked(marker.committed_offset):
            return
        if committed and not appended:
            raise refused(
                f"{file} is not the file that was loaded as channel {channel}, or has changed since, or is read in another way: "
                f"its first {committed:,} rows would be taken for loaded",
                "Leave --channel out, or give a new one: the file is loaded whole, as upserts. Or, if it has only grown: "
                f"--appended loads what is behind row {committed:,}.",
            )
        marker.skip(load.mark(marker.committed_offset))
        marker.flush("queryable")
