"""What a format hands to the commit log of its tables. The log knows no format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate_tables.commitlog.bodies import ServiceBody, SlotKind
from headgate_tables.commitlog.fields import Fields
from headgate_tables.commitlog.layout import LogLayout


@dataclass(frozen=True, slots=True)
class LogFormat(LogLayout):
    """Where the log lies, and ``services``: what reads the slots of the format's table services, by kind.

    A slot of a kind that neither these nor the log itself know is refused.
    """

    services: Mapping[SlotKind, Callable[[Fields], ServiceBody]] = field(compare=False)
