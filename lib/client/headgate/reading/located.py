"""Where the rows of a table lie, which is all that reading one needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from headgate.definition import TableInfo
from headgate.reading.library import Found, Options

if TYPE_CHECKING:
    import pyarrow as pa


class Located(ABC):
    """A table whose files this program can read."""

    @abstractmethod
    def _place(self, options: Options) -> tuple[str, Options]:
        """Its address, and the settings to read there: ``options``, or those it was opened with."""


class LocatedByName(Located):
    """A table of a cluster, which knows its address."""

    @property
    @abstractmethod
    def info(self) -> TableInfo:
        """The table's definition."""

    def _place(self, options: Options) -> tuple[str, Options]:
        return self.info.url, options


class LocatedByAddress(Located):
    """A table that was found at an address."""

    def __init__(self, found: Found, options: Options) -> None:
        self._found = found
        self._options = options

    @property
    def url(self) -> str:
        """Where the table lies."""
        return self._found.url

    @property
    def name(self) -> str:
        """The table's own name."""
        return self._found.name

    @property
    def schema(self) -> pa.Schema:
        """The table's columns when it was opened."""
        return self._found.schema

    def _place(self, options: Options) -> tuple[str, Options]:
        return self._found.url, options or self._options
