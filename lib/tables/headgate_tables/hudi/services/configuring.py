"""Changes settings of a table in a CONFIG slot, so that they belong to the table and not to a process."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from headgate_tables.commitlog.bodies import Configured
from headgate_tables.errors import OptionError
from headgate_tables.face.settings import SETTINGS, TableSettings, field_of
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.services.table_context import TableContext

Check: TypeAlias = Callable[[TableSettings, Definition], None]


def configure(table: TableContext, changes: Mapping[str, str | None], check_ttl: Check, check_row_order: Check) -> TableSettings:
    """Wins a CONFIG slot unless nothing changes; returns the settings. Raises OptionError before anything is decided.

    ``check_ttl`` raises it for a retention that the table does not fit, ``check_row_order`` for columns to sort by.
    """
    before = table.log.state.settings
    after = {key: value for key, value in {**before, **changes}.items() if value is not None}
    for key in changes.keys() - before.keys():
        field_of(key)  # one that is to be unset, too
    settings = TableSettings.from_texts(after)
    _check_bounds(settings, changes)
    if {"headgate.ttl", "headgate.ttl.by"} & changes.keys():
        check_ttl(settings, table.definition)
    if "hoodie.clustering.plan.strategy.sort.columns" in changes:
        check_row_order(settings, table.definition)
    if after != before:
        table.log.decide(lambda _: Configured(settings=after))
    return settings


def _check_bounds(settings: TableSettings, changes: Collection[str]) -> None:
    """Only of what changes: a table that has such a value already can still be read."""
    for name, setting in SETTINGS.items():
        value = getattr(settings, name)
        if setting.key in changes and isinstance(value, float) and not (math.isfinite(value) and value <= setting.most):
            raise OptionError(f"{setting.key}={value:g} is too large", fix=f"It is {setting.about}.")
