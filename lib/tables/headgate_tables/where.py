"""A condition in SQL as a pyarrow expression over a table's columns, so that partitions and row groups can be pruned by it.

sqlglot reads the text, in DuckDB's dialect; this file only translates. Values take the type of the column that they are compared
with, and null is SQL's: what is neither true nor false selects no row. For that NOT is pushed down to the comparisons.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.near_names import did_you_mean
from headgate_tables.where_values import typed

if TYPE_CHECKING:
    from sqlglot import exp

_Join = Callable[[pc.Expression, pc.Expression], pc.Expression]
_SIGNS: Mapping[str, _Join] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
_OPPOSITE = {"EQ": "NEQ", "NEQ": "EQ", "LT": "GTE", "GTE": "LT", "GT": "LTE", "LTE": "GT"}
_SWAPPED = {"EQ": "EQ", "NEQ": "NEQ", "LT": "GT", "GT": "LT", "LTE": "GTE", "GTE": "LTE"}
_BOTH = frozenset({"this", "expression"})
_ARGUMENTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("And", "Or", "Is", *_SIGNS), _BOTH),
    **dict.fromkeys(("Like", "ILike"), _BOTH | {"negate"}),
    **dict.fromkeys(("Paren", "Not", "Column", "Boolean", "Neg"), frozenset({"this"})),
    "Between": frozenset({"this", "low", "high"}),
    "In": frozenset({"this", "expressions"}),
    "Literal": frozenset({"this", "is_string"}),
    "Cast": frozenset({"this", "to"}),
}
"""What each kind of sqlglot's nodes holds that is looked at here."""
_FIX = (
    "Compare columns with values by =, <>, <, <=, >, >=, IN, BETWEEN, LIKE and IS NULL, joined by AND, OR and NOT, with text in "
    "single quotes. For more, query the rows with DuckDB."
)


def where(text: str, schema: pa.Schema) -> pc.Expression:
    """The condition ``text``, such as ``day >= '2026-11-22' AND status IN ('new', 'open')``.

    Names are those of ``schema``; another case will do where it is unmistakable. Raises OptionError for what is no such
    condition, SchemaError for an unknown column.
    """
    import sqlglot  # half a second of CPU, which only a scan with such a condition pays
    from sqlglot import errors, exp

    try:
        tree = sqlglot.parse_one(text, read="duckdb", into=exp.Condition)
        return _Translation(text, schema).condition(tree, negated=False)
    except errors.SqlglotError as error:
        raise OptionError(f"{text!r} is not a condition", fix=_FIX) from error
    except RecursionError as error:
        raise OptionError("the condition is nested too deeply", fix="Write it with fewer parentheses in each other.") from error


class _Translation:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema

    def condition(self, node: exp.Expr, *, negated: bool) -> pc.Expression:
        """``node``, or with ``negated`` its opposite."""
        kind = type(node).__name__
        self._check(node)
        match kind:
            case "Paren":
                return self.condition(node.this, negated=negated)
            case "Not":
                return self.condition(node.this, negated=not negated)
            case "And" | "Or":
                terms = [self.condition(term, negated=negated) for term in self._terms(node)]
                return _joined(terms, operator.and_ if (kind == "And") != negated else operator.or_)
            case "EQ" | "NEQ" | "LT" | "LTE" | "GT" | "GTE":
                return self._compared(node.this, kind, node.expression, negated=negated)
            case "Between":
                low = self._compared(node.this, "GTE", node.args["low"], negated=negated)
                high = self._compared(node.this, "LTE", node.args["high"], negated=negated)
                return low | high if negated else low & high
            case "In":
                return self._contained(node, negated=negated)
            case "Is":
                return self._known(node, negated=negated)
            case "Like" | "ILike":
                return self._like(node, ignore_case=kind == "ILike", negated=negated != bool(node.args.get("negate")))
            case "Column":
                found = pc.field(self._boolean(node).name)
                return ~found if negated else found
            case "Boolean":
                return pc.scalar(bool(node.this) != negated)
            case _:
                return self._refuse(node)

    def _terms(self, node: exp.Expr) -> list[exp.Expr]:
        """Of a chain of ANDs or of ORs, which sqlglot nests to the left: programs write thousands."""
        kind, terms = type(node), []
        while type(node) is kind:
            self._check(node)
            terms.append(node.expression)
            node = node.this
        return [node, *reversed(terms)]

    def _compared(self, left: exp.Expr, sign: str, right: exp.Expr, *, negated: bool) -> pc.Expression:
        if not _is_column(left):
            if not _is_column(right):
                self._refuse(left)
            left, sign, right = right, _SWAPPED[sign], left
        field = self._field(left)
        if _is_column(right):
            other = self._field(right)
            if other.type != field.type:
                self._refuse(right, f"{other.name} is {other.type}, and {field.name} is {field.type}")
            value = pc.field(other.name)
        else:
            value = _literal(self._value(right, field))
        # NaN compares as false, and so its opposite is true.
        if negated and pa.types.is_floating(field.type):
            return ~_SIGNS[sign](pc.field(field.name), value)
        return _SIGNS[_OPPOSITE[sign] if negated else sign](pc.field(field.name), value)

    def _contained(self, node: exp.Expr, *, negated: bool) -> pc.Expression:
        if not node.expressions or not _is_column(node.this):
            self._refuse(node)
        field = self._field(node.this)
        given = [part for part in node.expressions if type(part).__name__ != "Null"]
        values = [self._value(part, field) for part in given]
        own = [value.as_py() for value in values if value.type == field.type]
        if pa.types.is_floating(field.type) and 0.0 in own:
            own += [0.0, -0.0]  # equal, and not alike: the kernel compares bits
        found = pc.field(field.name).isin(pa.array(own, field.type))
        for value in values:
            if value.type != field.type:  # 1.5 in a column of integers, for example
                found = found | (pc.field(field.name) == _literal(value))
        if not negated:
            return found
        if len(given) < len(node.expressions):
            return pc.scalar(False)  # unequal to null is never true
        return ~found & pc.field(field.name).is_valid()

    def _known(self, node: exp.Expr, *, negated: bool) -> pc.Expression:
        if not _is_column(node.this):
            self._refuse(node)
        wanted = type(node.expression).__name__
        if wanted == "Null":
            found = pc.field(self._field(node.this).name)
            return ~found.is_null() if negated else found.is_null()
        if wanted != "Boolean":
            self._refuse(node)
        found = pc.field(self._boolean(node.this).name)
        truth, opposite = (found, ~found) if node.expression.this else (~found, found)
        return opposite | found.is_null() if negated else truth

    def _like(self, node: exp.Expr, *, ignore_case: bool, negated: bool) -> pc.Expression:
        pattern = node.expression
        if not _is_column(node.this) or not getattr(pattern, "is_string", False):
            self._refuse(node)
        field = self._field(node.this)
        if not pa.types.is_string(field.type):
            self._refuse(node, f"{field.name} is {field.type}")
        # To Arrow a backslash is an escape; in SQL it is a character like others.
        found = pc.match_like(pc.field(field.name), pattern.this.replace("\\", "\\\\"), ignore_case=ignore_case)
        return ~found if negated else found

    def _boolean(self, node: exp.Expr) -> pa.Field[pa.DataType]:
        field = self._field(node)
        if not pa.types.is_boolean(field.type):
            self._refuse(node, f"{field.name} is {field.type}, no condition")
        return field

    def _check(self, node: exp.Expr) -> None:
        """Refuses a node of a kind or with an argument that would be overlooked here (SYMMETRIC, for example)."""
        known = _ARGUMENTS.get(type(node).__name__, frozenset())
        if any(given and name not in known for name, given in node.args.items()):
            self._refuse(node)

    def _field(self, node: exp.Expr) -> pa.Field[pa.DataType]:
        self._check(node)
        name = node.name
        if name not in self._schema.names:
            similar = [known for known in self._schema.names if known.lower() == name.lower()]
            if len(similar) != 1:
                raise SchemaError(
                    f"the table has no column {name!r}, which {self._text!r} names",
                    fix=f"{did_you_mean(name, self._schema.names)}Its columns are {', '.join(self._schema.names)}. "
                    "Text stands in single quotes.",
                )
            [name] = similar
        return self._schema.field(name)

    def _value(self, node: exp.Expr, field: pa.Field[pa.DataType]) -> pa.Scalar[Any]:
        text, is_text = self._literal(node)
        value = typed(text, field.type, is_text=is_text)
        if value is None:
            written = f"'{text}'" if is_text else text
            self._refuse(node, f"{written} is no value for {field.name}, which is {field.type}")
        return value

    def _literal(self, node: exp.Expr) -> tuple[str, bool]:
        """The text of a value, and whether it stood in quotes (or after DATE or TIMESTAMP)."""
        self._check(node)
        match type(node).__name__:
            case "Literal":
                return str(node.this), bool(node.is_string)
            case "Neg" if type(node.this).__name__ == "Literal" and not node.this.is_string:
                return f"-{node.this.this}", False
            case "Boolean":
                return str(node.this).lower(), False
            case "Cast" if node.this.is_string and node.to.this.name in ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ"):  # type: ignore[attr-defined]
                return str(node.this.this), True
            case "Null":
                return self._refuse(node, "nothing equals null: write IS NULL")
            case _:
                return self._refuse(node)

    def _refuse(self, node: exp.Expr, why: str = "") -> NoReturn:
        reason = why or f"{node.sql(dialect='duckdb')!r} is no part that a filter can have"
        raise OptionError(f"the condition {self._text!r} cannot be used: {reason}", fix=_FIX)


def _literal(value: pa.Scalar[Any]) -> pc.Expression:
    return pc.scalar(value)  # type: ignore[arg-type] # a scalar of Arrow's keeps its type


def _is_column(node: exp.Expr) -> bool:
    return type(node).__name__ == "Column"


def _joined(terms: Sequence[pc.Expression], join: _Join) -> pc.Expression:
    """In pairs, and pairs of these: Arrow walks through an expression by recursion."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [*(join(left, right) for left, right in pairs), *terms[len(terms) // 2 * 2 :]]
    return terms[0]
