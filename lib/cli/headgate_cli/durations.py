"""Durations as options: "90s", "12h", "30d"."""

from datetime import timedelta
from typing import Final, cast

import click

from headgate_runtime.values import duration


def as_duration(text: str) -> timedelta:
    """Raises ValueError for anything else, a number without a unit, and more than Python can say (2.7 million years)."""
    seconds = cast(float, duration(text))
    try:
        return timedelta(seconds=seconds)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long a duration") from error


class DurationType(click.ParamType[timedelta]):
    """Of an option whose value is a ``timedelta``."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Ends the command with click's error, which names the option, for what is no duration."""
        if isinstance(value, timedelta):
            return value
        try:
            return as_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION: Final = DurationType()
MILLISECOND: Final = timedelta(milliseconds=1)
