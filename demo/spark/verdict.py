"""The demo's figures, and whether all held."""

from dataclasses import dataclass
from typing import Any

from demo.oracle import Comparison
from demo.spark.row_groups import RowGroups


@dataclass(frozen=True, slots=True)
class SparkVerdict:
    """``comparison``: of hudi-rs' rows. ``route``: rows of the route that Spark finds, ``route_expected``: that DuckDB finds.
    ``unsorted``, ``sorted``: what a query for the route has to read before and after.
    """

    comparison: Comparison
    route: int
    route_expected: int
    unsorted: RowGroups
    sorted: RowGroups
    table: str

    @property
    def passed(self) -> bool:
        """Whether readers agree, and sorting helped."""
        return self.comparison.ok and self.route == self.route_expected and self.sorted.to_read < self.unsorted.to_read

    def lines(self) -> list[str]:
        """The report, for people."""
        found = self.comparison
        rows = "[bold green]the same, row for row[/]" if found.ok else "[bold red]NOT THE SAME[/]"
        route = "[bold green]as many[/]" if self.route == self.route_expected else "[bold red]NOT AS MANY[/]"
        return [
            f"  hudi-rs reads {found.found:,} rows; DuckDB computes {found.expected:,} from the CSV: {rows}",
            f"  Spark finds {self.route:,} flights of the route, DuckDB {self.route_expected:,}: {route}",
            f"  Row groups that such a query reads: {self.unsorted} before, {self.sorted} since the table is sorted",
            *(f"    {example}" for example in found.examples),
            f"  The table is {self.table}.",
        ]

    def record(self) -> dict[str, Any]:
        """All figures, for programs."""
        return {
            "ok": self.passed,
            "rows": self.comparison.found,
            "rows_expected": self.comparison.expected,
            "route": self.route,
            "route_expected": self.route_expected,
            "row_groups": self.sorted.total,
            "row_groups_read": self.sorted.to_read,
            "row_groups_read_before": self.unsorted.to_read,
            "examples": list(self.comparison.examples),
            "table": self.table,
        }
