"""The table that a request means, by its name and its own id: another one may have the name by now."""

from typing import NamedTuple

from headgate_coordinator.tables.storage import TableStorage
from headgate_tables.errors import OptionError
from headgate_tables.face.definition import Definition
from headgate_tables.face.owner import Table


class MeantTable(NamedTuple):
    """Each check raises OptionError when another table has the name."""

    name: str
    uuid: str

    def check(self, table: Table) -> None:
        """Lets a table pass that another program made: it has no id, and its handle refuses what ends a name by itself."""
        if table.definition is not None:
            self._check(table.definition)

    def check_stored(self, storage: TableStorage) -> None:
        """For a table that is not owned here. Blocks: a read. Raises as ``TableStorage.describe``."""
        self._check(storage.describe(self.name).definition)

    def _check(self, definition: Definition) -> None:
        if str(definition.table_uuid) != self.uuid:
            raise OptionError("another table has this name now", fix="Look at it, and call again if you mean it.")
