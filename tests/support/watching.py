"""What services really export, and what alert rules and the dashboard ask of it."""

import json
import re
import subprocess
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from support.processes import READY_S

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "watching" / "rules.yaml"
DASHBOARD = ROOT / "deploy" / "watching" / "dashboard.json"
OF_PROMETHEUS = frozenset({"namespace", "pod", "container", "instance", "job", "le"})
"""Labels that Prometheus and Kubernetes add, and that of histograms' buckets."""
_RULE = re.compile(r"^      - alert: (\w+)\n(.*?)(?=^      - alert: |^  - name: |\Z)", re.MULTILINE | re.DOTALL)
_SELECTOR = re.compile(r"\b((?:headgate|process|python)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPED = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of the rules: its expression in one line, and the anchor that it names in the manual."""

    name: str
    expr: str
    anchor: str


def alerts(text: str = "") -> list[Alert]:
    """The alerts of the rules, read by their layout; ``promtool check rules`` reads the file as YAML."""
    found = []
    for name, body in _RULE.findall(text or RULES.read_text(encoding="utf-8")):
        expr = re.search(r"^        expr: (?:\|\n)?(.*?)(?=^        \w+:)", body, re.MULTILINE | re.DOTALL)
        anchor = re.search(r"^          runbook_url: docs/operations\.md#(\S+)$", body, re.MULTILINE)
        assert expr, name
        assert anchor, name
        found.append(Alert(name, " ".join(expr.group(1).split()), anchor.group(1)))
    return found


def dashboard_queries() -> dict[str, str]:
    """Queries of the dashboard by panel, with Grafana's variables as it fills them in."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return {
        f"{panel['title']} {target['refId']}": _filled_in(target["expr"])
        for panel in panels
        for target in panel.get("targets", ())
    }


def _filled_in(expr: str) -> str:
    return expr.replace("$__rate_interval", "1m").replace("$namespace", ".*").replace("$table", ".*")


def promtool(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs it and returns its output."""
    return subprocess.run(["promtool", *command], text=True, capture_output=True, timeout=120, check=False)


@dataclass(slots=True)
class Exported:
    """Labels of each sample's name, and their values."""

    labels: defaultdict[str, defaultdict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def add(self, text: str) -> None:
        """Adds the answer of a scrape."""
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found = self.labels[sample.name]
                for label, value in sample.labels.items():
                    found[label].add(value)

    def missing(self, expr: str, known: Mapping[str, Collection[str]]) -> list[str]:
        """What ``expr`` asks for and nobody exports: names, labels, and values of labels. ``known``: all values of a label, where
        not each is exported at any time.
        """
        problems: list[str] = []
        grouping: set[str] = set(OF_PROMETHEUS)
        for name, matchers in _SELECTOR.findall(expr):
            if name not in self.labels:
                problems.append(f"no metric {name}")
                continue
            labels = self.labels[name]
            grouping |= labels.keys()
            for label, how, values in _MATCHER.findall(matchers):
                if label not in labels and label not in OF_PROMETHEUS:
                    problems.append(f"{name} has no label {label}")
                elif label in known and how in ("=", "=~"):
                    problems += [f"no {label} is {value}" for value in values.split("|") if value not in known[label]]
        for group in _GROUPED.findall(expr):
            problems += [f"no label {label}" for label in re.findall(r"\w+", group) if label not in grouping]
        return problems


def scraped(addresses: Iterable[str]) -> str:
    """The metrics of these processes."""
    return "".join(_scrape(address) for address in addresses)


def _scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=READY_S) as answer:
        return str(answer.read().decode())


def as_rules(queries: Mapping[str, str]) -> str:
    """The queries as recording rules, for promtool to parse."""
    rules: list[dict[str, Any]] = [{"record": f"q:{at}", "expr": expr} for at, expr in enumerate(queries.values())]
    return json.dumps({"groups": [{"name": "queries", "rules": rules}]})
