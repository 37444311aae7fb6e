"""``hoodie.properties``: Java Properties text, its escapes, its checksum.

Hudi: HoodieTableConfig, java.util.Properties for the text form.
"""

import re
import zlib
from collections.abc import Mapping

from headgate_tables.errors import CorruptFileError

PROPERTIES_PATH = ".hoodie/hoodie.properties"
CHECKSUM_KEY = "hoodie.table.checksum"
_SPECIAL = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\", ":": "\\:", "=": "\\=", "#": "\\#", "!": "\\!"}
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*(\s*[=:]\s*|\s+)")


def name_checksum(database: str, table: str) -> str:
    """Decimal text of the CRC-32 of ``<database>.<table>``; Spark refuses a table whose checksum is wrong."""
    return str(zlib.crc32(f"{database}.{table}".encode()))


def render(properties: Mapping[str, str], comment: str) -> bytes:
    """The file's bytes (ISO-8859-1), keys sorted, ``comment`` as its first line."""
    lines = [f"#{comment}"]
    lines += [f"{_escape(key, is_key=True)}={_escape(properties[key])}" for key in sorted(properties)]
    return ("\n".join(lines) + "\n").encode("latin-1")


def parse(data: bytes, path: str) -> dict[str, str]:
    """Keys and values. Raises CorruptFileError for a checksum that does not fit (Hudi does the same)."""
    properties: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        found = _SEPARATOR.search(line)
        key, value = (line[: found.start(1)], line[found.end(1) :]) if found else (line, "")
        properties[_unescape(key)] = _unescape(value)
    stored = properties.get(CHECKSUM_KEY)
    expected = name_checksum(properties.get("hoodie.database.name", ""), properties.get("hoodie.table.name", ""))
    if stored is not None and stored != expected:
        raise CorruptFileError(
            f"{path} has the checksum {stored}, but its database and table name give {expected}",
            fix="The file was edited or damaged. Restore it, or correct hoodie.table.checksum if the names are right.",
        )
    return properties


def _logical_lines(text: str) -> list[str]:
    """Lines without comments; a line that ends in an odd number of backslashes goes on in the next."""
    lines: list[str] = []
    parts: list[str] = []
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not parts and (not line or line[0] in "#!"):
            continue
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if goes_on else line)
        if not goes_on:
            lines.append("".join(parts))
            parts = []
    return lines


def _escape(text: str, *, is_key: bool = False) -> str:
    escaped = "".join(_escape_character(character) for character in text)
    if is_key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2))


def _unescape(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _UNESCAPED.get(code, code)

    return _ESCAPE.sub(one, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
