"""What Prometheus reads of a writer with more tables than its labels may have names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from headgate_writer.buffers import MemoryBudget
from headgate_writer.metrics import Refusals, TableTotals, WriterMetrics

NAMED = 1_000
SUMS = (
    "headgate_writer_rows_total",
    "headgate_writer_bytes_total",
    "headgate_writer_uncommitted_bytes",
    "headgate_writer_channels",
)


@dataclass
class Table:
    name: str
    uncommitted_bytes: int = 2
    channels: int = 2
    lags: Mapping[str, int] = field(default_factory=dict)


class Tables:
    def __init__(self, *tables: Table) -> None:
        self._tables = tables
        self.totals = {table.name: TableTotals(rows=2, nbytes=2) for table in tables}

    def attached(self) -> tuple[Table, ...]:
        return self._tables


def test_tables_beyond_the_names_of_a_label_are_one_sample_with_their_sum() -> None:
    last = [Table("one too many", lags={"c": 5}), Table("two too many", lags={"c": 7}), Table("three too many", lags={"c": 6})]
    registry = CollectorRegistry()
    WriterMetrics(registry, Tables(*(Table(f"t{at}") for at in range(NAMED)), *last), Refusals(), MemoryBudget(1, 2))
    samples = [sample for family in registry.collect() for sample in family.samples]
    assert len({(each.name, *each.labels.items()) for each in samples}) == len(samples)
    for name in SUMS:
        assert registry.get_sample_value(name, {"table": f"t{NAMED - 1}"}) == 2, name
        assert registry.get_sample_value(name, {"table": "other"}) == 6, name
    assert [each.value for each in samples if each.name == "headgate_writer_channel_lag_offsets"] == [7]
