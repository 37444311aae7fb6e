"""The question that the demo asks of its table."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """Rows whose columns equal these texts."""

    equal: Mapping[str, str]

    @property
    def sql(self) -> str:
        """The condition."""
        return " AND ".join(f"{name} = '{value}'" for name, value in self.equal.items())
