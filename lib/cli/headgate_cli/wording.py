"""Rewords messages of the SDK and the table library for the command line: options instead of Python calls."""

import re
from collections.abc import Sequence

_PARAMETER = (
    r"(?<![.\w])(buckets|since|as_of|columns|partitions|filter|roll_back|record_key|partition_by|ordering|exist_ok|go_on"
    r"|operation_column|token|name|hive_style)"
)
_RENAMED = {"partitions": "--partition", "record_key": "--key", "name": "NAME"}
_RULES: Sequence[tuple[str, str]] = (
    (r"call adopt\(buckets=\.\.\.\)", "run `headgate table adopt TABLE --buckets N`"),
    (r"call adopt\(\)", "run `headgate table adopt TABLE`"),
    (r"adopt with roll_back=True", "run `headgate table adopt TABLE --roll-back`"),
    (r"`?verify\(\)`?", "`headgate verify TABLE`"),
    (r"`?commits\(\)`?", "`headgate table timeline TABLE`"),
    (r"as (`headgate table timeline TABLE`) gives them", r"as \1 shows it"),
    (r"Open the table again; (`headgate table timeline TABLE`) tells", r"Run \1: it tells"),
    (r"Open the table again once the store answers; (`[^`]*`) then tells", r"Run \1 once the store answers: it tells"),
    (
        r"Adopt with remove_metadata_table=True, or open it with metadata_table='remove', to drop that,",
        "Run `headgate table adopt TABLE --remove-metadata-table` to drop that,",
    ),
    (r"Open it with open_table once the cause is removed; the first write completes it", "Remove the cause, then run it again"),
    (r"Open it with open_table, or pass exist_ok=True", "Use it, or add --exist-ok"),
    (r"Open it with open_table, or choose another place", "Use it, or choose another place"),
    (r"make a table there with create_table", "create a table with `headgate table create`"),
    (r"Write through it: headgate\.connect\('?([^')]*)'?\)\. If it is gone for good, .*", r"Name the table and --connect \1."),
    (r"Order by an integer or a timestamp\('us'\)", "Order by an integer or a timestamp"),
    (r"Use timestamp\('us'\)", "Use the type timestamp"),
    (r"tls=headgate\.Tls\(ca=\.\.\.\)", "--tls-ca FILE"),
    (r"headgate\.Tls\(certificate=\.\.\., key=\.\.\.\)", "--client-cert FILE --client-key FILE"),
    (r"table\.alter\(add=\{'?([^':]*)'?: …\}\)", r"`headgate table alter TABLE --add \1=TYPE`"),
    (r"Pass a pyarrow expression over column names, such as .*", "Write --filter column=value."),
    (r"mode='?(\w+)'? with since='?(\d*)'?", "--read-optimized with --since"),
    (r"Open the channel again and send the rows that follow its committed_offset", "Run the same command again"),
    (r"Then send the corrected rows with offset=\d+, or skip\(\)", "Correct these rows in the file, then load it again"),
    (
        r"Buffered rows are kept and still being sent: wait again, or end the program and start above committed_offset",
        "Run the same command again: it continues after the rows that are committed",
    ),
    (r"after a restart start above committed_offset", "a channel's offsets never fall"),
    (rf"{_PARAMETER}=(?:\.{{3,4}}|…|\[\.\.\.\]|True)", r"<\1>"),
    (rf"{_PARAMETER}='([^']*)'", r"<\1> \2"),
    (rf"{_PARAMETER}=(?=[\w-])", r"<\1> "),
)


def for_command_line(text: str) -> str:
    """``text`` with the libraries' calls and parameters replaced by commands and options."""
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return re.sub(r"<(\w+)>", lambda found: _option(found[1]), text)


def _option(parameter: str) -> str:
    return _RENAMED.get(parameter) or "--" + parameter.replace("_", "-")
