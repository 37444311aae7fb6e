"""What `headgate table truncate` and `headgate table delete-partitions` share: rows are counted, and removed in one commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate_cli.cluster import Access
from headgate_cli.confirming import confirm
from headgate_cli.maintenance.target import call_owner, is_address
from headgate_cli.output import Output, counted
from headgate_cli.table.location import locate_table, open_unowned
from headgate_tables.face.owner import Table


class Removed(NamedTuple):
    """``instant``: "" when no row was there; ``file_groups``: how many had rows."""

    instant: str
    file_groups: int


@dataclass(frozen=True, slots=True)
class Removal:
    """Of ``partitions`` of a table, or of all of its rows where there are none."""

    output: Output
    table_name: str
    access: Access
    storage: tuple[str, ...]
    partitions: Sequence[str]

    def run(self, *, yes: bool, plan_only: bool, take_over: bool) -> None:
        """Counts, asks, and removes. By name the table's owner removes, unless the table is taken over."""
        if is_address(self.table_name) or take_over:
            location = locate_table(self.table_name, self.access, self.storage)
            with open_unowned(location, take_over=take_over) as table:
                if (rows := self._agreed(table, yes=yes, plan_only=plan_only)) is not None:
                    done = table.delete_partitions(self.partitions) if self.partitions else table.truncate()
                    self._show(rows, Removed(done.instant, done.replaced))
            return
        with locate_table(self.table_name, self.access, self.storage).open() as table:
            rows = self._agreed(table, yes=yes, plan_only=plan_only)
        if rows is not None:
            said = call_owner(
                self.access,
                self.table_name,
                lambda owner: owner.truncate(self.partitions, whole_table=not self.partitions),
            )
            self._show(rows, Removed(said.instant, said.file_groups))

    def _agreed(self, table: Table, *, yes: bool, plan_only: bool) -> int | None:
        """The rows that are there, if they are to be removed. Raises OptionError for a partition that the table never had."""
        table.check_partitions(self.partitions)
        rows = _count(table, self.partitions)
        if plan_only:
            self.output.print_json({"partitions": self.partitions, "rows": rows})
            self.output.print_text(f"{counted(rows, 'row')} would be removed.")
            return None
        if not yes:
            places = f" ({', '.join(self.partitions)})" if self.partitions else ""
            confirm(self.output, f"Remove {counted(rows, 'row')} of {self.table_name}{places}?")
        return rows

    def _show(self, rows: int, done: Removed) -> None:
        self.output.print_json(
            {"partitions": self.partitions, "rows": rows, "instant": done.instant, "replaced": done.file_groups}
        )
        text = f"{done.instant}: {counted(rows, 'row')} in {counted(done.file_groups, 'file group')} removed."
        self.output.print_text(text if done.instant else "No rows were there.", fg="green")


def _count(table: Table, partitions: Sequence[str]) -> int:
    """Rows now: merged, of the key columns alone."""
    columns = list(table.definition.record_key) if table.definition else None
    return sum(batch.num_rows for batch in table.scan(columns, partitions or None).to_reader())
