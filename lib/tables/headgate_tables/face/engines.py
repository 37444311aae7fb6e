"""How another engine uses a table: what its users run and set, as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Engine = Literal["spark", "flink", "trino"]


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """``statements``: SQL that makes the engine know the table, once. ``settings``: of a session that works on this table alone.

    ``options``: of a program that reads or writes without SQL; of Trino, its catalog file. ``notes``: sentences on what holds
    beside. Secrets and addresses of other servers are not in it.
    """

    engine: Engine
    statements: tuple[str, ...]
    settings: Mapping[str, str]
    options: Mapping[str, str]
    notes: tuple[str, ...]
