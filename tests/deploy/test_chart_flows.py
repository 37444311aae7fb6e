"""The chart's NetworkPolicies, flow by flow: what has to be possible is, and nothing else."""

from collections.abc import Mapping, Sequence
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from support.helm import VALUES, Manifest, manifests, pods, template

CLIENT = {"app": "producer"}
HOME, MONITORING, OTHER = "headgate", "monitoring", "other"
IDENTITY = ("169.254.169.254", dict[str, str]())
"""Where a machine of a cloud asks for its own identity."""
PARTS = ("coordinator", "writer", "compactor", "redis", "s3", "credentials")
Pod = tuple[str, Mapping[str, str]]
"""Namespace and labels of a pod, or an address outside and no labels."""

FLOWS = {
    ("client", "coordinator", 7070),
    ("client", "writer", 7070),
    ("writer", "coordinator", 7071),
    ("writer", "writer", 7071),
    ("compactor", "coordinator", 7071),
    ("coordinator", "coordinator", 7071),
    ("coordinator", "redis", 6380),
    *((part, "s3", 7070) for part in ("coordinator", "writer", "compactor", "client")),
    *(("prometheus", part, 9090) for part in ("coordinator", "writer", "compactor")),
}
"""All connections that pods of the trial and their neighbours may make to each other."""
PORTS = (6380, 7070, 7071, 7072, 7073, 9090)


@cache
def rendered(name: str) -> Sequence[Manifest]:
    return manifests(template(VALUES[name]).out)


def pod_of(part: str, name: str) -> Pod:
    """The pod of a part, or of a neighbour."""
    if part in PARTS:
        workload = f"headgate-{part}"
        return HOME, next(pod["metadata"]["labels"] for each, pod in pods(rendered(name)) if each.startswith(workload))
    return {"client": (HOME, CLIENT), "prometheus": (MONITORING, {"app": "prometheus"}), "stranger": (OTHER, CLIENT)}[part]


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert set(selector) <= {"matchLabels"}
    return selector.get("matchLabels", {}).items() <= labels.items()


def is_peer(peer: Mapping[str, Any], pod: Pod) -> bool:
    place, labels = pod
    if "ipBlock" in peer:
        return place[0].isdigit() and ip_address(place) in ip_network(peer["ipBlock"]["cidr"])
    if place[0].isdigit():
        return False
    spaces = peer.get("namespaceSelector")
    here = matches(spaces, {"kubernetes.io/metadata.name": place}) if spaces is not None else place == HOME
    return here and matches(peer.get("podSelector", {}), labels)


def allows(name: str, direction: str, pod: Pod, other: Pod, port: int, protocol: str = "TCP") -> bool:
    """Whether the policies of ``pod`` let it talk with ``other`` in that direction; without any policy they do."""
    key = {"Ingress": "from", "Egress": "to"}[direction]
    policies = [each["spec"] for each in rendered(name) if each["kind"] == "NetworkPolicy"]
    own = [
        each for each in policies if pod[0] == HOME and matches(each["podSelector"], pod[1]) and direction in each["policyTypes"]
    ]
    rules = [rule for each in own for rule in each.get(direction.lower(), [])]
    return not own or any(
        (key not in rule or any(is_peer(peer, other) for peer in rule[key]))
        and any(each["port"] == port and each.get("protocol", "TCP") == protocol for each in rule["ports"])
        for rule in rules
    )


def connects(name: str, caller: Pod, called: Pod, port: int) -> bool:
    return allows(name, "Egress", caller, called, port) and allows(name, "Ingress", called, caller, port)


@pytest.mark.parametrize("caller", [*PARTS, "client", "prometheus", "stranger"])
def test_each_flow_is_possible_if_it_is_needed_and_only_then(caller: str) -> None:
    name = "values-trial"
    for called in PARTS:
        for port in PORTS:
            possible = connects(name, pod_of(caller, name), pod_of(called, name), port)
            assert possible == ((caller, called, port) in FLOWS), (caller, called, port)


def test_names_are_resolved_by_those_that_call_by_name() -> None:
    name, dns = "values-trial", ("kube-system", {"k8s-app": "kube-dns"})
    asking = {part for part in PARTS if allows(name, "Egress", pod_of(part, name), dns, 53, "UDP")}
    assert asking == {"coordinator", "writer", "compactor"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "port", "place"), [("aws", 443, "52.0.0.1"), ("own-s3", 9000, "10.1.2.3")])
def test_services_reach_the_store_and_nothing_else_outside(name: str, port: int, place: str) -> None:
    for part in ("coordinator", "writer", "compactor"):
        pod = pod_of(part, name)
        assert allows(name, "Egress", pod, (place, {}), port)
        assert not allows(name, "Egress", pod, (place, {}), port + 1)
        assert not allows(name, "Egress", pod, (place, {}), 80)
        assert not allows(name, "Egress", pod, IDENTITY, 80)
    assert allows("own-s3", "Egress", pod_of("writer", "own-s3"), ("10.1.2.3", {}), 9000)
    assert not allows("own-s3", "Egress", pod_of("writer", "own-s3"), ("10.2.2.3", {}), 9000)


@pytest.mark.parametrize("part", ["coordinator", "writer", "compactor"])
def test_without_keys_and_role_services_reach_who_tells_them_the_machine_s_identity(part: str) -> None:
    name = "watching"
    pod = pod_of(part, name)
    assert [port for port in (80, 443, 988, 8080) if allows(name, "Egress", pod, IDENTITY, port)] == [80, 443, 988]
    assert not allows(name, "Egress", pod, ("10.1.2.3", {}), 80)


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("https://minio1:9000", 9000),
        ("http://minio1", 80),
        ("https://[2001:db8::1]:9443/s3", 9443),
        ("https://[2001:db8::80]", 443),
        ("https://s3.example.org", 443),
    ],
)
def test_the_port_of_the_store_s_address_need_not_be_named(endpoint: str, port: int) -> None:
    settings = (f"storage.s3.endpoint={endpoint}", "storage.s3.allowHttp=true", "storage.existingSecret=keys")
    said = template(None, "store=s3://rows", *settings)
    policies = [each["spec"] for each in manifests(said.out) if each["kind"] == "NetworkPolicy" and "egress" in each["spec"]]
    outside = [[each["port"] for each in rule["ports"]] for spec in policies for rule in spec["egress"] if "to" not in rule]
    stores = [ports for ports in outside if 443 in ports and 6443 not in ports]
    assert stores == [list(dict.fromkeys([443, port]))] * 3


def test_coordinators_alone_reach_a_redis_of_the_operator_s() -> None:
    name, redis = "own-redis", ("10.9.9.9", {})
    reaching = {
        part for part in ("coordinator", "writer", "compactor") if allows(name, "Egress", pod_of(part, name), redis, 6379)
    }
    assert reaching == {"coordinator"}


def test_the_job_reaches_the_api_and_nothing_else() -> None:
    name = "values-trial"
    job, api = pod_of("credentials", name), ("10.96.0.1", {})
    assert allows(name, "Egress", job, api, 443)
    assert allows(name, "Egress", job, api, 6443)
    assert not any(allows(name, "Egress", job, api, port) for port in (80, 53, 7070, 7071, 6380))
    assert not any(connects(name, pod_of("client", name), job, port) for port in (80, 443, 7070, 9090))
