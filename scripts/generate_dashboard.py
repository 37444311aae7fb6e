"""Writes the Grafana dashboard, deploy/watching/dashboard.json: `./task python scripts/generate_dashboard.py`.

Grafana's JSON is mostly layout; what a reader wants to know, and to change, are title, unit and query of each panel.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "deploy" / "watching" / "dashboard.json"
WIDTH = 24
"""Columns of a Grafana dashboard."""
_HEIGHT = 8


@dataclass(frozen=True, slots=True)
class Query:
    """``expr``: PromQL. ``legend``: of each series, with labels as ``{{table}}``."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart over time. ``unit``: Grafana's name of it. ``about``: what to conclude from it. ``stacked``: areas add up."""

    title: str
    unit: str
    about: str
    queries: Sequence[Query]
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A heading with its panels below, which share the width."""

    title: str
    panels: Sequence[Panel]


_N = 'namespace=~"$namespace"'
_T = f'{_N},table=~"$table"'
_RATE = "$__rate_interval"


def _of_process(metric: str) -> str:
    """A metric of the process itself, of this cluster's processes alone, by service."""
    return f"{metric} * on (namespace, instance) group_left (service) headgate_info{{{_N}}}"


def _by_table(function: str, metric: str) -> str:
    return f"{function} by (table) ({metric}{{{_T}}})"


def _rate(metric: str, by: str, filters: str = _T) -> str:
    return f"sum by ({by}) (rate({metric}{{{filters}}}[{_RATE}]))"


def _quantile(metric: str, quantile: float) -> str:
    return f"histogram_quantile({quantile}, {_rate(f'{metric}_bucket', 'le, table')})"


def _panel(title: str, unit: str, about: str, *queries: tuple[str, str], stacked: bool = False) -> Panel:
    return Panel(title, unit, about, [Query(expr, legend) for expr, legend in queries], stacked)


_COMMITTED_AT = _by_table("max", "headgate_last_commit_timestamp_seconds")
_WAITING = _by_table("max", "headgate_uncommitted_bytes")
_CPU = _of_process(f"rate(process_cpu_seconds_total{{{_N}}}[{_RATE}])")

ROWS = (
    Row(
        "Is it well?",
        (
            _panel(
                "Alarms that stand",
                "short",
                "None is well. `headgate status` has their texts.",
                (f"sum by (table, kind) (headgate_alarm{{{_N}}})", "{{kind}} {{table}}"),
            ),
            _panel(
                "Freshness",
                "s",
                "Time since the last commit, while rows wait for one. About the interval of checkpoints is well.",
                (f"(time() - {_COMMITTED_AT}) and {_WAITING} > 0", "{{table}}"),
            ),
            _panel(
                "Processes",
                "short",
                "Coordinators that are scraped, and what the best connected of them sees.",
                (f"count(headgate_tables_owned{{{_N}}})", "coordinators"),
                (f"max(headgate_writers{{{_N}}})", "writers"),
                (f"max(headgate_compactors{{{_N}}})", "compactors"),
                (f"min(headgate_redis_reachable{{{_N}}})", "Redis (0: not reached)"),
            ),
        ),
    ),
    Row(
        "Rows",
        (
            _panel("Rows", "rowsps", "Rows taken from clients.", (_rate("headgate_writer_rows_total", "table"), "{{table}}")),
            _panel(
                "Bytes",
                "binBps",
                "Arrow bytes taken from clients.",
                (_rate("headgate_writer_bytes_total", "table"), "{{table}}"),
            ),
            _panel(
                "Refused batches",
                "short",
                "Batches a second that writers refused, by the code of the error.",
                (_rate("headgate_writer_refused_batches_total", "code", _N), "{{code}}"),
            ),
        ),
    ),
    Row(
        "Checkpoints",
        (
            _panel(
                "Checkpoint time",
                "s",
                "From barrier to published. Near the interval: writers or the store are at their limit.",
                (_quantile("headgate_checkpoint_duration_seconds", 0.5), "{{table}} median"),
                (_quantile("headgate_checkpoint_duration_seconds", 0.99), "{{table}} 99 %"),
            ),
            _panel(
                "Uncommitted bytes",
                "bytes",
                "Rows taken and not committed, by writer. The autoscaler of writers goes by it.",
                (f"sum by (instance) (headgate_writer_uncommitted_bytes{{{_T}}})", "{{instance}}"),
            ),
            _panel(
                "Aborts and takeovers",
                "short",
                "Each abort makes clients send uncommitted rows again; a takeover is a new owner of a table.",
                (f"sum by (table) (increase(headgate_aborts_total{{{_T}}}[{_RATE}]))", "{{table}} aborts"),
                (f"sum by (table) (increase(headgate_fences_total{{{_T}}}[{_RATE}]))", "{{table}} takeovers"),
            ),
        ),
    ),
    Row(
        "Compaction",
        (
            _panel(
                "Log files of the fullest slice",
                "short",
                "Reads get slower with each; at the table's limit (100) no rows are taken.",
                (_by_table("max", "headgate_fullest_slice_log_files"), "{{table}}"),
            ),
            _panel(
                "Operations",
                "short",
                "Waiting for long: add compactors. Left out: a slice cannot be compacted.",
                (_by_table("sum", "headgate_operations_waiting"), "{{table}} waiting"),
                (_by_table("sum", "headgate_operations_running"), "{{table}} running"),
                (f"sum by (table) (increase(headgate_operations_dropped_total{{{_T}}}[{_RATE}]))", "{{table}} left out"),
            ),
            _panel(
                "Backpressure",
                "short",
                "How many times further apart checkpoints are, and 16 while no rows are taken. 1 is well.",
                (_by_table("max", "headgate_checkpoint_stretch_ratio"), "{{table}}"),
                (f"16 * {_by_table('max', 'headgate_intake_stopped')} > 0", "{{table}} stopped"),
            ),
            _panel(
                "Limit on intake",
                "binBps",
                "Bytes a second that writers take while log bytes are near their limit; nothing is shown without a limit.",
                (f"{_by_table('min', 'headgate_intake_limit_bytes_per_second')} < Inf", "{{table}}"),
            ),
        ),
    ),
    Row(
        "Processes",
        (
            _panel(
                "Memory",
                "bytes",
                "Resident memory. Writers stay within memory_limit.",
                (_of_process(f"process_resident_memory_bytes{{{_N}}}"), "{{service}} {{instance}}"),
            ),
            _panel(
                "Buffers of writers",
                "percentunit",
                "At 1 a writer reads its clients no further.",
                (f"headgate_writer_buffer_bytes{{{_N}}} / headgate_writer_buffer_limit_bytes{{{_N}}}", "{{instance}}"),
            ),
            _panel(
                "CPU",
                "short",
                "Cores, by service.",
                (f"sum by (service) ({_CPU})", "{{service}}"),
                stacked=True,
            ),
            _panel(
                "CPU per row",
                "s",
                "CPU of all services, for each row taken. It grows with small batches, many buckets and many tables.",
                (f"sum({_CPU}) / sum(rate(headgate_writer_rows_total{{{_N}}}[{_RATE}]))", "seconds a row"),
            ),
        ),
    ),
)


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${DS}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _chart(panel: Panel, place: dict[str, int], number: int) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + at), "expr": query.expr, "legendFormat": query.legend} for at, query in enumerate(panel.queries)
    ]
    custom = {"fillOpacity": 20 if panel.stacked else 0, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": {"type": "prometheus", "uid": "${DS}"},
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    }


def _laid_out(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    y, number = 0, 1
    for row in rows:
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        width = WIDTH // len(row.panels)
        for at, panel in enumerate(row.panels):
            yield _chart(panel, {"x": at * width, "y": y + 1, "w": width, "h": _HEIGHT}, number + 1 + at)
        y, number = y + 1 + _HEIGHT, number + 1 + len(row.panels)


def dashboard() -> str:
    """Returns the JSON text of the dashboard."""
    source = {"name": "DS", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    made = {
        "uid": "headgate",
        "title": "Headgate",
        "tags": ["headgate"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                source,
                _variable("namespace", "Namespace", "label_values(headgate_info, namespace)"),
                _variable("table", "Table", "label_values(headgate_last_commit_timestamp_seconds, table)"),
            ]
        },
        "panels": list(_laid_out(ROWS)),
    }
    return json.dumps(made, indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(dashboard(), encoding="utf-8")
