"""`headgate configure`: shows and changes the settings of a table's services."""

from collections.abc import Sequence

import click

from headgate_cli.cluster import Access
from headgate_cli.completion import complete_settings
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.output import Output
from headgate_tables.face.settings import SETTINGS, TableSettings


@click.command("configure", short_help="Show or change settings of a table.")
@click.option(
    "--unset", multiple=True, metavar="KEY", shell_complete=complete_settings, help="Restore the default; may be repeated."
)
@table_command
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]…", shell_complete=complete_settings)
def configure(
    output: Output, /, table_name: str, changes: tuple[str, ...], unset: tuple[str, ...], access: Access, storage: tuple[str, ...]
) -> None:
    """Shows or changes the settings of TABLE (a name, or an address with a slash).

    Settings control compaction, cleaning and archiving. They are stored with the table and hold from the next checkpoint on. Keys
    are Hudi's where Hudi has one. Without changes, the command shows every setting with its value and meaning.

    \b
    Examples:
      headgate configure flights
      headgate configure flights hoodie.compact.inline.max.delta.commits=10 hoodie.clean.commits.retained=30
      headgate configure flights --unset hoodie.clean.commits.retained
    """  # noqa: D301 - click wants the backspace
    if wrong := [each for each in changes if "=" not in each]:
        raise click.UsageError(f"{wrong[0]!r} is not KEY=VALUE")
    wanted = {key.strip(): value.strip() for key, _, value in (each.partition("=") for each in changes)}
    if both := wanted.keys() & set(unset):
        raise click.UsageError(f"{both.pop()} has a value and --unset: give one of them")
    if is_address(table_name):
        settings = _in_this_process(table_name, storage, wanted, unset)
    else:
        settings = fields_of(call_owner(access, table_name, lambda owner: owner.configure(wanted, unset)))["settings"]
    changed = wanted.keys() | set(unset)
    _show(output, [each for each in settings if not changed or each["key"] in changed])


def _in_this_process(
    address: str, storage: tuple[str, ...], wanted: dict[str, str], unset: Sequence[str]
) -> list[dict[str, str]]:
    with open_address(address, storage) as table:
        now = table.configure({**wanted, **dict.fromkeys(unset)}) if wanted or unset else table.settings
    values, defaults = now.to_texts(), TableSettings().to_texts()
    return [
        {"key": each.key, "value": values[each.key], "default": defaults[each.key], "about": each.about}
        for each in SETTINGS.values()
    ]


def _show(output: Output, settings: Sequence[dict[str, str]]) -> None:
    """Prints settings; for people each with its meaning on a second line."""
    for each in settings:
        output.print_json(each)
        default = "" if each["value"] == each["default"] else f"  (default {each['default']})"
        output.print_text(f"{each['key']} = {each['value']}{default}", bold=bool(default))
        output.print_text(f"    {each['about']}")
