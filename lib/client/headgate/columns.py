"""One column of Python rows: whether Arrow leaves its values as they are, and what it gets instead where it would not."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headgate.fitting import Fit, UnfitValueError
from headgate.nested_fitting import fit_of
from headgate.values import value_error

if TYPE_CHECKING:
    from headgate.values import Field


class Column(NamedTuple):
    """``get`` gives a row's value; values of the types in ``safe`` need no further look."""

    field: "Field"
    fit: Fit
    safe: frozenset[type]
    get: Callable[[Mapping[str, object]], object]

    @classmethod
    def of(cls, field: "Field", *, may_lack: bool = False) -> "Column":
        """``may_lack``: a row without the column has null in it."""
        fit = fit_of(field.type)
        get = operator.methodcaller("get", field.name) if may_lack else operator.itemgetter(field.name)
        return cls(field, fit, fit.safe, get)

    def takes(self, rows: Sequence[Mapping[str, object]]) -> bool:
        """Whether Arrow converts the values without a change, or refuses them."""
        if len(rows) == 1 and type(self.get(rows[0])) in self.safe:  # for programs that send row by row
            return True
        if self.safe.issuperset(map(type, map(self.get, rows))):
            return True
        try:
            return self.fit.takes(list(map(self.get, rows)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return False

    def fitted(self, rows: Sequence[Mapping[str, object]], first: int) -> list[object]:
        """What Arrow gets for each row. Raises RowError, which names row, column and, in a nested value, the place."""
        values = list(map(self.get, rows))
        for at, value in enumerate(values):
            try:
                values[at] = self.fit.fit(value)
            except UnfitValueError as unfit:
                what = f"{value!r:.80} does not fit {self.field.type}: {unfit.where}{': ' if unfit.where else ''}{unfit.why}"
                raise value_error(first + at, self.field, what, unfit.fix) from None
        return values
