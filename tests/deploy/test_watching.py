"""Alert rules and the dashboard: promtool understands them, the manual has a line for each alert, and services export what
they ask for.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from demo.ports import free_port
from headgate import aio
from headgate.errors import BatchRefusedError
from headgate_coordinator.core.alarms import AlarmKind
from headgate_proto.api.v1 import errors_pb2
from k8s.external_metrics.server import METRICS
from scripts.generate_dashboard import dashboard
from support.alert_cases import CASES, promtool_tests
from support.cluster import Cluster
from support.waiting import wait_until
from support.watching import DASHBOARD, ROOT, RULES, Exported, alerts, as_rules, dashboard_queries, promtool, scraped

KNOWN = {"kind": [kind.value for kind in AlarmKind], "code": list(errors_pb2.Code.keys())}

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")


def lines_of_the_manual() -> list[str]:
    """Anchors of the lines of "When it rings"."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## When it rings\n")[2].partition("\n## ")[0]
    lines = [
        line for line in section.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| metric or alarm"))
    ]
    found = [re.match(r'\| <a id="([\w-]+)"></a>', line) for line in lines]
    assert all(found), [line for line, anchor in zip(lines, found, strict=True) if anchor is None]
    return [anchor.group(1) for anchor in found if anchor]


def test_each_line_of_the_manual_has_an_alert_and_each_alert_a_line() -> None:
    lines = lines_of_the_manual()
    assert len(lines) == len(set(lines)) > 20
    assert {alert.anchor for alert in alerts()} == set(lines)
    assert len(alerts()) == RULES.read_text().count("alert:")


def test_each_kind_of_alarm_rings() -> None:
    expressions = "\n".join(alert.expr for alert in alerts())
    ringing = {kind for matched in re.findall(r'kind=~?"([^"]+)"', expressions) for kind in matched.split("|")}
    assert ringing == {kind.value for kind in AlarmKind}


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"SUCCESS: {len(alerts())} rules found" in checked.stdout


@needs_promtool
def test_each_alert_fires_when_it_should_and_is_silent_when_it_should_not(tmp_path: Path) -> None:
    assert {case.alert for case in CASES} == {alert.name for alert in alerts()}
    tests = tmp_path / "tests.json"
    tests.write_text(promtool_tests(RULES))
    ran = promtool("test", "rules", tests)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.slow
@needs_promtool
def test_a_case_that_does_not_hold_fails(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        RULES.read_text().replace("(increase(headgate_fences_total[1h])) > 6", "(increase(headgate_fences_total[1h])) > 60")
    )
    tests = tmp_path / "tests.json"
    tests.write_text(promtool_tests(rules))
    ran = promtool("test", "rules", tests)
    assert ran.returncode != 0
    assert "HeadgateTakeovers" in ran.stdout + ran.stderr


def test_the_dashboard_is_what_its_description_makes() -> None:
    assert DASHBOARD.read_text(encoding="utf-8") == dashboard(), "run `./task python scripts/generate_dashboard.py`"


def test_panels_have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    numbers = set()
    for panel in json.loads(dashboard())["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        numbers.add(panel["id"])
    assert len(numbers) == len(json.loads(dashboard())["panels"])


@needs_promtool
def test_promtool_understands_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    queries = tmp_path / "queries.json"
    queries.write_text(as_rules(dashboard_queries()))
    checked = promtool("check", "rules", queries)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    queries.write_text(as_rules({"broken": "sum by (table (rate(x[1m]))"}))
    assert promtool("check", "rules", queries).returncode != 0


# --- what is really exported ---


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    """Of a cluster that has taken rows, refused some, and lost its writer."""
    parts = ("coordinator-1", "writer-1", "compactor-1")
    addresses = {name: f"127.0.0.1:{free_port()}" for name in parts}
    options = {name: ["--metrics-listen", address] for name, address in addresses.items()}
    options["coordinator-1"] += ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]
    found = Exported()
    with Cluster(tmp_path_factory.mktemp("scraped") / "cluster", writers=1, compactors=1, options=options) as cluster:
        asyncio.run(some_rows(cluster.address, lambda: found.add(scraped(addresses.values()))))
        cluster.drain("writer-1")
        found.add(wait_until("an alarm", lambda: with_alarm(scraped([addresses["coordinator-1"]]))))
        yield found


def with_alarm(text: str) -> str | None:
    return text if "headgate_alarm{" in text else None


async def some_rows(address: str, scrape: Callable[[], None]) -> None:
    schema = pa.schema([("id", pa.string()), ("day", pa.string())])
    async with aio.connect(address) as hg:
        table = await hg.create_table("t", schema=schema, key="id", partition_by="day", buckets=2)
        async with table.channel("good") as good:
            await good.upsert([{"id": "a", "day": "1"}])
            await good.flush()
            with pytest.raises(BatchRefusedError):
                await a_bad_row(table)
            await asyncio.to_thread(scrape)


async def a_bad_row(table: aio.Table) -> None:
    async with table.channel("bad") as bad:
        await bad.upsert([{"id": "", "day": "1"}])
        await bad.flush()


@pytest.mark.slow
def test_services_export_what_the_alerts_ask_for(exported: Exported) -> None:
    problems = {alert.name: exported.missing(alert.expr, KNOWN) for alert in alerts()}
    assert not {name: missing for name, missing in problems.items() if missing}


def test_services_export_what_the_dashboard_asks_for(exported: Exported) -> None:
    problems = {panel: exported.missing(query, KNOWN) for panel, query in dashboard_queries().items()}
    assert not {panel: missing for panel, missing in problems.items() if missing}


def test_services_export_what_the_manual_names(exported: Exported) -> None:
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("docs/operations.md", "docs/protocol/commit-log.md"))
    named = set(re.findall(r"`(headgate_[a-z_]+)`", pages))
    assert len(named) > 8
    assert sorted(named - exported.labels.keys()) == []


def test_services_export_what_autoscalers_ask_for(exported: Exported) -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    queries = re.findall(r"`(sum\(headgate_[^`]+)`", text)
    assert len(queries) == len(METRICS)
    assert [exported.missing(query, KNOWN) for query in queries] == [[], []]
    asked = [set(re.findall(r"headgate_\w+", query)) for query in queries]
    assert asked == [set(metric.names) for metric in METRICS.values()], "the test server adds up the same"


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("headgate_abort_total > 0", "no metric headgate_abort_total"),
        ('headgate_aborts_total{writer="a"} > 0', "headgate_aborts_total has no label writer"),
        ('headgate_alarm{kind=~"clock|clok"} > 0', "no kind is clok"),
        ("sum by (tables) (headgate_uncommitted_bytes)", "no label tables"),
        ("headgate_writers * on (node) headgate_info", "no label node"),
    ],
)
def test_what_nobody_exports_is_found(expr: str, problem: str, exported: Exported) -> None:
    assert exported.missing(expr, KNOWN) == [problem]


def test_names_follow_prometheus_conventions(exported: Exported) -> None:
    ours = {name for name in exported.labels if name.startswith("headgate_")}
    for name in ours:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
        assert not re.search(r"_(ms|millis|mib|mb|kb|minutes|hours|percent)(_|$)", name), "base units: seconds, bytes, ratio"
