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


def configure(
    table: TableContext, given: Mapping[str, str | float | None], check_ttl: Check, check_row_order: Check
) -> TableSettings:
    """Wins a CONFIG slot unless nothing changes; returns the settings. Raises OptionError before anything is decided.

    ``check_ttl`` raises it for a retention that the table does not fit, ``check_row_order`` for columns to sort by.
    """
    before, changes = table.log.state.settings, _texts(given)
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


def _texts(given: object) -> dict[str, str | None]:
    """By name; None: the default is to be restored. A number or a bool stands for its text, as in the SDK."""
    if not isinstance(given, Mapping):
        raise OptionError(f"{given!r:.80} is no mapping of settings", fix='Pass names and values: {"name": "value"}.')
    return {_name(key): _text(key, value) for key, value in given.items()}


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise OptionError(f"{key!r:.80} is no name of a setting", fix="Pass a str.")
    return key


def _text(key: object, value: object) -> str | None:
    match value:
        case bool():
            return str(value).lower()
        case None | str():
            return value
        case int() | float():
            return str(value)
        case _:
            raise OptionError(f"{key}={value!r:.80} is no value of a setting", fix="Pass a str, a number or a bool.")


def _check_bounds(settings: TableSettings, changes: Collection[str]) -> None:
    """Only of what changes: a table that has such a value already can still be read."""
    for name, setting in SETTINGS.items():
        value = getattr(settings, name)
        if setting.key in changes and isinstance(value, float) and not (math.isfinite(value) and value <= setting.most):
            raise OptionError(f"{setting.key}={value:g} is too large", fix=f"It is {setting.about}.")
