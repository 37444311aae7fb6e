"""The server of external metrics, which the acceptance uses: what an autoscaler asks, over HTTPS, of processes that export."""

import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from k8s.external_metrics.manifests import external_metrics
from k8s.external_metrics.server import GROUP, METRICS, scraped, server, total, value_list
from support.processes import READY_S

WRITERS, OPERATIONS = METRICS
FIGURES = {
    "writer": ("headgate_writer_uncommitted_bytes", {"t": 1500.0, "u": 500.5}),
    "coordinator": ("headgate_operations_waiting", {"t": 3.0}),
}


@pytest.fixture(scope="module")
def sources() -> Iterator[dict[str, str]]:
    """An exporter of each kind."""
    found = {}
    running = []
    for kind, (name, values) in FIGURES.items():
        registry = CollectorRegistry()
        gauge = Gauge(name, "A figure", ["table"], registry=registry)
        for table, value in values.items():
            gauge.labels(table).set(value)
        exporter, _ = start_http_server(0, "127.0.0.1", registry)
        running.append(exporter)
        found[kind] = f"localhost:{exporter.server_port}"
    yield found
    for exporter in running:
        exporter.shutdown()
        exporter.server_close()


@pytest.fixture(scope="module")
def address(sources: dict[str, str]) -> Iterator[str]:
    with server("127.0.0.1:0", sources) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def ask(url: str) -> Any:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(url, context=context, timeout=READY_S) as answer:
        return json.load(answer)


def test_the_api_server_finds_every_metric(address: str) -> None:
    found = ask(f"{address}{GROUP}")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "external.metrics.k8s.io/v1beta1")
    assert {each["name"] for each in found["resources"]} == set(METRICS)
    assert ask(f"{address}/readyz") == {}


@pytest.mark.parametrize(("metric", "value"), [(WRITERS, "2000500m"), (OPERATIONS, "3000m")])
def test_an_autoscaler_gets_the_sum_of_all_processes(metric: str, value: str, address: str) -> None:
    found = ask(f"{address}{GROUP}/namespaces/anywhere/{metric}?labelSelector=")
    (item,) = found["items"]
    assert (found["kind"], item["metricName"], item["value"]) == ("ExternalMetricValueList", metric, value)
    assert datetime.strptime(item["timestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) <= datetime.now(UTC)


@pytest.mark.parametrize("path", [f"{GROUP}/namespaces/ns/unknown", f"{GROUP}/{WRITERS}", "/apis", "/"])
def test_what_is_not_there_is_not_found(path: str, address: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(address + path)


def test_a_process_that_does_not_answer_makes_no_figure_rather_than_a_smaller_one() -> None:
    gone = {"writer": "127.0.0.1:1"}
    with pytest.raises(OSError, match="refused"):
        scraped(gone["writer"])
    with server("127.0.0.1:0", gone) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            with pytest.raises(urllib.error.HTTPError, match="503"):
                ask(f"https://127.0.0.1:{serving.server_address[1]}{GROUP}/namespaces/ns/{WRITERS}")
        finally:
            serving.shutdown()
            thread.join()


def test_only_samples_of_these_names_are_added_up() -> None:
    text = '# TYPE a gauge\na{table="t"} 1\na{table="u"} 2\n# TYPE b gauge\nb 4\n# TYPE a_b gauge\na_b 8\n'
    assert total([text, text], ["a", "b"]) == 14
    assert value_list("a", 0.5, datetime(2026, 1, 2, tzinfo=UTC))["items"][0]["value"] == "500m"


@pytest.mark.slow
def test_the_manifest_names_one_service_throughout() -> None:
    made = external_metrics("trial", "headgate:1", {"writer": "w.trial.svc:9090"})
    by_kind = {item["kind"]: item for item in made["items"]}
    assert set(by_kind) == {"APIService", "Service", "ConfigMap", "Deployment"}
    api = by_kind["APIService"]
    assert api["metadata"] == {"name": "v1beta1.external.metrics.k8s.io"}, "it has no namespace"
    assert api["spec"]["service"] == {"name": by_kind["Service"]["metadata"]["name"], "namespace": "trial", "port": 443}
    pod = by_kind["Deployment"]["spec"]["template"]
    assert by_kind["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert "--source=writer=w.trial.svc:9090" in pod["spec"]["containers"][0]["command"]
    compile(by_kind["ConfigMap"]["data"]["server.py"], "server.py", "exec")
    assert {item["metadata"]["namespace"] for item in made["items"] if item is not api} == {"trial"}
