"""How a program on Spark reaches a cluster: by options of its readers and writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headgate_tables.errors import OptionError

if TYPE_CHECKING:
    import headgate

NAMES: Final = ("connect", "tokenFile", "tlsCa")


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """``addresses``: of coordinators, "" for none. ``token_file``, ``tls_ca``: files where a task finds them; "" for none."""

    addresses: str = ""
    token_file: str = ""
    tls_ca: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ClusterAccess:
        """From options by their names."""
        return cls(*(given.get(name, "") for name in NAMES))

    def connect(self, timeout: float) -> headgate.Headgate:
        """A connection of this process. Raises OptionError without the SDK."""
        try:
            import headgate
        except ImportError as error:
            raise OptionError(
                f"a cluster is reached by the SDK, and {error.name} is not installed here",
                fix="pip install 'headgate-spark[cluster]', where the driver runs and in the Python of every executor.",
            ) from error
        token = Path(self.token_file) if self.token_file else None
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.connect(self.addresses, token=token, tls=tls, timeout=timeout)

    def url_of(self, table: str, timeout: float = 60.0) -> str:
        """Where the table of this name lies, as its coordinators see it."""
        with self.connect(timeout) as cluster:
            return cluster.table(table).info.url
