"""The type of a column of texts: the narrowest that has an equal value for each. What can be read in two ways is asked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import refused
from headgate_cli.reading.text_values import LOCAL, Array, fits, numbers, trimmed
from headgate_tables.arrow import pc

Fits: TypeAlias = Callable[[Array, ReadOptions], bool]

INSTANT = pa.timestamp("us", tz="UTC")
_NULL_WORDS = pa.array(["NA", "N/A", "n/a", "na", "NULL", "Null", "null", "\\N", "None", "NaN", "nan", "-", "--", "?", "#N/A"])
_INTEGER = r"^-?(?:0|[1-9]\d*)$"
_FLOAT = r"^-?(?:(?:0|[1-9]\d*)\.?|(?:0|[1-9]\d*)?\.\d+)(?:[eE][+-]?\d+)?$|^-?(?:[iI]nf(?:inity)?|NaN|nan)$"
_COMMA = r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?$"
_COMMA_OR_GROUPED = r"^[+-]?(?:\d+|\d{1,3},\d{3})$"
_GROUPED = r"^[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$"
_SLASHES = r"^\d{1,2}[/-]\d{1,2}[/-]\d{2,4}$"
_SLASHES_AND_TIME = r"^\d{1,2}[/-]\d{1,2}[/-]\d{2,4}[T ,]+\d{1,2}:\d{2}.*$"
_FLOAT_DIGITS = 17  # more than a float64 can tell apart: such a text would not come back equal


class ColumnInference:
    """The type of one column; it is shown all texts, batch by batch. ``kinds``: those that come into question, by name."""

    def __init__(self, options: ReadOptions, kinds: Sequence[str] = ()) -> None:
        self._options = options
        self._left: list[str] = list(kinds or _KINDS)
        self._words: set[str] = set()
        self._marks = False  # whether a text has a mark that only some take for one between digits
        self._any = False

    def add(self, column: Array) -> None:
        """Takes more texts (string) into account."""
        if not self._left or column.null_count == len(column):
            return
        texts = trimmed(column).drop_null()
        words = pc.is_in(texts, value_set=_NULL_WORDS)
        if pc.any(words).as_py():
            self._words.update(pc.unique(texts.filter(words)).to_pylist())
            texts = texts.filter(pc.invert(words))
        self._any = self._any or len(texts) > 0
        if "comma" in self._left or "dots" in self._left:
            self._marks = self._marks or bool(
                pc.any(pc.match_substring(texts, "," if self._options.decimal == "." else ".")).as_py()
            )
        self._left = list(self._fitting(texts))

    def _fitting(self, texts: Array) -> Iterator[str]:
        """The kinds left. What fits one kind fits those that take all its texts, so most columns are looked at once or twice."""
        implied: Sequence[str] = ()
        for kind in self._left:
            if kind in implied:
                yield kind
            elif (not implied or kind in _MARKED) and _KINDS[kind](texts, self._options):
                implied = implied or _IMPLIED.get(kind, ())
                if kind == "int64" and (pc.max(pc.utf8_length(texts)).as_py() or 0) > _FLOAT_DIGITS:
                    implied = ()
                if (kind == "timestamp" and not self._options.timezone) or (kind == "date" and self._options.date_format):
                    implied = (kind,)  # nothing else
                yield kind

    def kind(self, name: str) -> pa.DataType:
        """The type; null when there was no value. ``name``: of the column, for errors. Raises CommandError for a question."""
        if not self._any:
            return pa.string() if self._words else pa.null()
        found = self._left[0] if self._left else "text"
        if found == "text" or (found in _MARKED and not self._marks):
            return pa.string()
        if found in _ASKED:
            raise _asked(name, found)
        if found == "local" and not self._options.timezone:
            raise _without_zone(name)
        if self._words - ({"NaN", "nan"} if found == "float64" else set()):
            raise _null_words(name, self._words, found)
        return _TYPES[found]

    def probable(self) -> pa.DataType:
        """The type as ``kind`` gives it, or text where it would ask."""
        found = self._left[0] if self._any and self._left else "text"
        return _TYPES.get(found, pa.string())


def _matches(texts: Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _is_truth(texts: Array, options: ReadOptions) -> bool:
    words = ["true", "false", *(word.lower() for word in (*options.true_words, *options.false_words))]
    return pc.all(pc.is_in(pc.utf8_lower(texts), value_set=pa.array(words))).as_py() is not False


def _is_integer(texts: Array, options: ReadOptions) -> bool:
    return _matches(numbers(texts, pa.float64(), options), _INTEGER) and fits(texts, pa.int64(), options)


def _is_float(texts: Array, options: ReadOptions) -> bool:
    plain = numbers(texts, pa.float64(), options)
    if not _matches(plain, _FLOAT):
        return False
    if (pc.max(pc.utf8_length(plain)).as_py() or 0) > _FLOAT_DIGITS:
        digits = plain
        for pattern in (r"[eE].*$", r"\D", r"^0+", r"0+$"):
            digits = pc.replace_substring_regex(digits, pattern, "")
        if pc.max(pc.utf8_length(digits)).as_py() > _FLOAT_DIGITS:
            return False
    return fits(texts, pa.float64(), options)


def _is_date(texts: Array, options: ReadOptions) -> bool:
    return not pc.any(pc.match_substring(texts, ":")).as_py() and fits(texts, pa.date32(), options)


def _is_instant(texts: Array, options: ReadOptions) -> bool:
    return fits(texts, INSTANT, replace(options, timezone="", timestamp_format=""))


def _is_local(texts: Array, options: ReadOptions) -> bool:
    kind = INSTANT if options.timezone else LOCAL
    # An hour that a zone has twice or never is an error of its row, not a reason to make the column one of text.
    zone = replace(options, timezone="UTC") if options.timezone else options
    return (bool(options.timestamp_format) or _matches(texts, r"^\d{1,4}[-/.]")) and fits(texts, kind, zone)


def _is_marked(pattern: str, decimal: str) -> Fits:
    return lambda texts, options: options.decimal == decimal and not options.thousands and _matches(texts, pattern)


_KINDS: dict[str, Fits] = {
    "boolean": _is_truth,
    "int64": _is_integer,
    "float64": _is_float,
    "date": _is_date,
    "timestamp": _is_instant,
    "local": _is_local,
    "comma or grouped": _is_marked(_COMMA_OR_GROUPED, "."),
    "comma": _is_marked(_COMMA, "."),
    "grouped": _is_marked(_GROUPED, "."),
    "dots": _is_marked(_COMMA, ","),
    "slashes": lambda texts, _: _matches(texts, _SLASHES),
    "slashes and time": lambda texts, _: _matches(texts, _SLASHES_AND_TIME),
}
"""In the order in which they are preferred."""

_IMPLIED: dict[str, Sequence[str]] = {
    "int64": ("float64", "comma or grouped", "comma", "grouped", "dots"),
    "float64": ("float64",),
    "date": ("local",),
    "timestamp": ("local",),
}

TIMES = ("date", "timestamp", "local")
"""The kinds that come into question where the format itself has numbers and truth values."""

_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp": INSTANT,
    "local": INSTANT,
}
_MARKED = ("comma or grouped", "comma", "grouped", "dots")
_ASKED = {
    "comma or grouped": ("numbers with a comma", "Give --decimal , if 1,234 is a little more than 1, or --thousands , otherwise"),
    "comma": ("numbers with a decimal comma", "Give --decimal , (and --thousands . where 1.234,5 occurs)"),
    "grouped": ("numbers with commas between thousands", "Give --thousands ,"),
    "dots": ("numbers with dots between thousands", "Give --thousands ."),
    "slashes": ("dates whose day and month could be exchanged", "Give --date-format '%d/%m/%Y' or '%m/%d/%Y'"),
    "slashes and time": ("times whose day and month could be exchanged", "Give --timestamp-format, such as '%m/%d/%Y %H:%M'"),
}  # fmt: skip


def _asked(name: str, found: str) -> CommandError:
    what, fix = _ASKED[found]
    return refused(f"column {name!r} has {what}", f"{fix}; or keep the text: --cast '{name}=string'.")


def _without_zone(name: str) -> CommandError:
    return refused(
        f"column {name!r} has times without a time zone",
        f"Give --timezone UTC or another zone, such as Europe/Berlin; or keep the text: --cast '{name}=string'.",
    )


def _null_words(name: str, words: set[str], found: str) -> CommandError:
    shown = sorted(words)
    return refused(
        f"column {name!r} is {found if found != 'local' else 'timestamp'} but for {', '.join(map(repr, shown))}",
        f"Give {' '.join(f'--null {word!r}' for word in shown)} if that means null, or keep the text: --cast '{name}=string'.",
    )
