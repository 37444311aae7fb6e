"""CPU and metrics of a cluster's processes between two moments."""

import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil
from prometheus_client.parser import text_string_to_metric_families

from support.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Reading:
    """``cpu``: seconds by kind of part, up to now. ``sums``: of each metric's samples, over tables."""

    cpu: Mapping[str, float]
    sums: Mapping[str, float] = field(default_factory=dict)

    def __sub__(self, earlier: "Reading") -> "Reading":
        cpu = {kind: seconds - earlier.cpu[kind] for kind, seconds in self.cpu.items()}
        return Reading(cpu, {name: value - earlier.sums.get(name, 0.0) for name, value in self.sums.items()})

    @property
    def total_cpu(self) -> float:
        """Of all processes."""
        return sum(self.cpu.values())


def read(cluster: Cluster, metrics_address: str, table: str = "") -> Reading:
    """``metrics_address``: of the coordinator. ``table``: only samples of this one; empty: of all."""
    cpu: defaultdict[str, float] = defaultdict(float)
    for name, part in cluster.parts.items():
        parent = psutil.Process(part.pid)
        for process in (parent, *parent.children(recursive=True)):
            used = process.cpu_times()
            cpu[name.partition("-")[0]] += used.user + used.system
    return Reading(dict(cpu), _sums(metrics_address, table))


def _sums(address: str, table: str) -> Mapping[str, float]:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    found: defaultdict[str, float] = defaultdict(float)
    for sample in (sample for family in families for sample in family.samples):
        if not table or sample.labels.get("table") == table:
            found[sample.name] += sample.value
    return dict(found)
