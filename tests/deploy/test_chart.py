"""The chart's renderings: valid, alike each time, without secrets, as committed; and what it refuses."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from referencing import Registry, Resource

from headgate_compactor.settings import CompactorSettings
from headgate_coordinator.settings import CoordinatorSettings
from headgate_writer.settings import WriterSettings
from support.helm import CHART, RENDERED, TRIAL, VALUES, VERSION, Manifest, helm, manifests, template

CUSTOM = {"cert-manager.io", "keda.sh", "monitoring.coreos.com"}
"""Groups whose schemas are not Kubernetes's."""
SECRET = re.compile(r"-----BEGIN|\bhg_[0-9a-f]{8}|AKIA[0-9A-Z]{12}|eyJ[A-Za-z0-9_-]{20}|://[^/$\s]+:[^@$\s]+@")
STORE = "store=s3://rows/lake"


@cache
def rendered(name: str) -> Sequence[Manifest]:
    said = template(VALUES[name])
    assert said.code == 0, said.errors
    return manifests(said.out)


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_helm_finds_nothing_to_complain_of(name: str) -> None:
    said = helm("lint", "--strict", CHART, "--kube-version", VERSION, "--values", VALUES[name])
    assert said.code == 0, said.out


@cache
def validator(kind: str, version: str) -> jsonschema.Draft202012Validator:
    """Of Kubernetes's objects of a kind, with unknown fields refused. The package itself reads all schemas for each object."""
    folder = files(kubernetes_validate) / "kubernetes-json-schema" / f"v{VERSION}-local-strict"
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", version)
    schema = json.loads((folder / f"{kind.lower()}-{group}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema, registry=definitions(folder))


@cache
def definitions(folder: Traversable) -> Registry[Any]:
    """What the schemas of a version share."""
    shared = Resource.from_contents(json.loads((folder / "_definitions.json").read_text(encoding="utf-8")))
    return shared @ Registry()


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_every_object_is_strictly_one_of_kubernetes(name: str) -> None:
    for each in rendered(name):
        if each["apiVersion"].partition("/")[0] not in CUSTOM:
            validator(each["kind"], each["apiVersion"]).validate(each)


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    """Else the test above would say nothing."""
    pod = next(each for each in rendered("aws") if each["kind"] == "StatefulSet")
    changed = json.loads(json.dumps(pod))
    changed["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(jsonschema.ValidationError, match="terminationGracePeriod"):
        validator("StatefulSet", "apps/v1").validate(changed)


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_two_renderings_are_alike_and_hold_no_secret(name: str) -> None:
    first = template(VALUES[name]).out
    assert first == template(VALUES[name]).out
    assert not SECRET.search(first)
    assert not [each for each in rendered(name) if each["kind"] == "Secret"]


@pytest.mark.parametrize("name", VALUES)
def test_every_object_is_of_the_release_and_its_namespace(name: str) -> None:
    """So that two releases go beside each other."""
    names = {(each["kind"], each["metadata"]["name"]) for each in rendered(name)}
    assert len(names) == len(rendered(name))
    for each in rendered(name):
        assert each["metadata"]["name"].partition("-")[0] == "headgate"
        assert each["metadata"]["namespace"] == "headgate"
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "headgate"


def test_the_committed_rendering_is_that_of_the_trial() -> None:
    """Made anew by: helm template headgate deploy/k8s/headgate -n headgate --kube-version 1.35.0 -f …/values-trial.yaml."""
    assert RENDERED.read_text(encoding="utf-8") == template(TRIAL).out


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "store is missing"),
        (["store=ftp://rows"], "store"),
        (["store=/data/lake"], "storage.volume.claim"),
        (["store=/elsewhere", "storage.volume.claim=c"], "below storage.volume.path"),
        ([STORE, "writer.replica=3"], "'replica' not allowed"),
        ([STORE, "writer.settings.max_inflight=1MiB"], "'max_inflight' not allowed"),
        ([STORE, "writer.replicas=three"], "/writer/replicas"),
        ([STORE, "redis.bundled=false"], "redis.address"),
        ([STORE, "redis.address=r:6379"], "redis.bundled=false"),
        ([STORE, "storage.s3.endpoint=http://s3:9000"], "allowHttp"),
        ([STORE, "storage.s3.roleArn=r", "storage.existingSecret=s"], "give one of them"),
        ([STORE, "trialStore.enabled=true"], "s3://trial"),
        ([STORE, "autoscaling.writer.enabled=true", "autoscaling.writer.cpuPercent=0"], "nothing to go by"),
        ([STORE, "autoscaling.writer.enabled=true", "autoscaling.writer.maxReplicas=1"], "below minReplicas"),
        ([STORE, "credentials.certificates=jobs"], "certificates"),
        ([STORE, "credentials.clientCaSecret=c"], "wants front.enabled=false"),
        ([STORE, "credentials.clientCaSecret=c", "insecure=true"], "clients have no TLS"),
        ([STORE, "service.front={rows.example.org}"], "/service/front/0"),
    ],
)
def test_wrong_values_are_refused_with_what_is_wrong(settings: list[str], said: str) -> None:
    refused = template(None, *settings)
    assert refused.code != 0
    assert said in refused.errors


def _schema() -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return read


FREE = {"nodeSelector", "annotations", "options", "podLabels", "podAnnotations", "labels", "global"}
"""Names that the chart cannot know."""


def test_the_schema_knows_each_value_and_no_other() -> None:
    def compare(values: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> None:
        if path.rpartition(".")[2] in FREE:
            return
        assert schema["additionalProperties"] is False, path
        if path.endswith((".settings", ".issuer")):
            return
        assert set(values) == set(schema["properties"]) - {"global"}, path
        for name, value in values.items():
            if isinstance(value, dict):
                compare(value, schema["properties"][name], f"{path}.{name}")

    compare(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), _schema(), "")


@pytest.mark.parametrize(
    ("service", "settings"), [("coordinator", CoordinatorSettings), ("writer", WriterSettings), ("compactor", CompactorSettings)]
)
def test_further_settings_are_those_of_the_service_that_the_chart_does_not_set(service: str, settings: Any) -> None:
    known = set(_schema()["properties"][service]["properties"]["settings"]["properties"])
    workload = {"coordinator": "StatefulSet", "writer": "StatefulSet", "compactor": "Deployment"}[service]
    taken: set[str] = set()
    for name in VALUES:
        for each in rendered(name):
            if each["kind"] == workload and each["metadata"]["name"] == f"headgate-{service}":
                (own,) = [one for one in each["spec"]["template"]["spec"]["containers"] if one["name"] == service]
                taken |= {entry["name"].removeprefix("HEADGATE_").lower() for entry in own["env"] if "HEADGATE_" in entry["name"]}
    assert taken - known <= set(settings.model_fields)
    unset = {"cluster_token", "cluster_domain", "tls_ca"}  # credentials are the chart's, and compactors serve nobody
    if service == "compactor":
        unset |= {"listen", "advertise", "insecure", "tls_cert", "tls_key", "access", "cluster_listen", "cluster_advertise"}
        unset |= {"client_ca"}
    assert set(settings.model_fields) - known - unset == (taken - known), service


def test_what_watches_is_what_the_repository_has() -> None:
    """Prometheus's own placeholders come through as they are."""
    found = rendered("watching")
    watching = CHART.parents[1] / "watching"
    rules = next(each for each in found if each["kind"] == "PrometheusRule")
    assert rules["spec"] == yaml.safe_load((watching / "rules.yaml").read_text(encoding="utf-8"))
    dashboard = next(each for each in found if each["metadata"]["name"] == "headgate-dashboard")
    shown = json.loads(dashboard["data"]["headgate.json"])
    assert shown == json.loads((watching / "dashboard.json").read_text(encoding="utf-8"))
    monitor = next(each for each in found if each["kind"] == "PodMonitor")
    (scraped,) = [each["port"] for each in monitor["spec"]["podMetricsEndpoints"]]
    for each in found:
        if each["kind"] in ("StatefulSet", "Deployment") and "redis" not in each["metadata"]["name"]:
            ports = {port["name"] for one in each["spec"]["template"]["spec"]["containers"] for port in one["ports"]}
            assert scraped in ports
    assert all(each["metadata"]["labels"]["release"] == "prometheus" for each in (rules, monitor))


@pytest.mark.parametrize("name", ["rows.v2", "2rows", "rows-"])
def test_a_release_whose_name_no_service_may_have_is_refused(name: str) -> None:
    refused = template(None, STORE, release=name)
    assert refused.code != 0
    assert "name" in refused.errors


def test_alerts_name_pages_of_the_operator_s_own_site() -> None:
    said = template(VALUES["watching"], "monitoring.runbooks=https://site/")
    (rules,) = [each for each in manifests(said.out) if each["kind"] == "PrometheusRule"]
    named = [rule["annotations"]["runbook_url"] for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert named
    assert all(each.removeprefix("https://site/").startswith("docs/operations.md#") for each in named)
    assert not any(each.startswith("docs/") for each in named)
