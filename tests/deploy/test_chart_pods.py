"""What the chart's pods may do, what they are given, and how they are watched."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.kubernetes.layout import ENDS
from headgate_compactor.settings import CompactorSettings
from headgate_coordinator.settings import CoordinatorSettings
from headgate_runtime.health import LIVE
from headgate_runtime.peers import ServiceKind
from headgate_runtime.settings import ServiceSettings, load_settings
from headgate_writer.settings import WriterSettings
from support.helm import VALUES, Manifest, container, containers, find, made_secrets, manifests, pods, secrets_of, template

SETTINGS = {
    ServiceKind.COORDINATOR: CoordinatorSettings,
    ServiceKind.WRITER: WriterSettings,
    ServiceKind.COMPACTOR: CompactorSettings,
}
MIB = 1 << 20


@cache
def rendered(name: str) -> Sequence[Manifest]:
    said = template(VALUES[name])
    assert said.code == 0, said.errors
    return manifests(said.out)


def service_pods(name: str) -> Mapping[ServiceKind, Manifest]:
    found = dict(pods(rendered(name)))
    return {service: found[f"headgate-{service}"] for service in ServiceKind}


def amount(text: str) -> float:
    """MiB or cores."""
    units = {"Mi": 1.0, "Gi": 1024.0, "m": 0.001, "": 1.0}
    number, unit = re.fullmatch(r"([0-9.]+)(Mi|Gi|m|)", text).groups()  # type: ignore[union-attr]
    return float(number) * units[unit]


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_pods_have_no_privileges(name: str) -> None:
    for workload, pod in pods(rendered(name)):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] == workload.startswith("headgate-credentials"), workload
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert not [each for each in spec["volumes"] if "hostPath" in each]
        for each in containers(pod):
            wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert each["securityContext"] == wanted, (workload, each["name"])
            assert amount(each["resources"]["limits"]["memory"]) >= amount(each["resources"]["requests"]["memory"])
            assert "cpu" in each["resources"]["requests"]


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_services_take_the_settings_that_they_are_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the service reads them: it would refuse one that is unknown or unsafe, and its pod would not start."""
    mounted = tmp_path / "file"
    mounted.touch()
    for service, pod in service_pods(name).items():
        env = {each["name"]: each.get("value", "x") for each in container(pod, service)["env"]}
        known = {f"HEADGATE_{setting.upper()}" for setting in SETTINGS[service].model_fields}
        assert {each for each in env if each.startswith("HEADGATE_")} <= known
        with monkeypatch.context() as patched:
            for variable, value in env.items():
                value = str(mounted) if value.startswith("/etc/headgate/") else value
                patched.setenv(variable, re.sub(r"\$\(\w+\)", "10.0.0.1", value))
            settings: ServiceSettings = load_settings(SETTINGS[service], [], prog="service", about="")
        assert settings.cluster_cert
        insecure = service is not ServiceKind.COMPACTOR and name == "insecure"
        assert settings.insecure == insecure
        if service is not ServiceKind.COMPACTOR and not insecure:
            assert settings.access
            assert settings.tls_cert or settings.listen.startswith("127.0.0.1:")
            assert bool(settings.client_ca) == (name == "own-s3")


def environment_of_coordinators(values: Path, *settings: str) -> dict[str, Any]:
    found = manifests(template(values, *settings).out)
    coordinator = container(dict(pods(found))["headgate-coordinator"], ServiceKind.COORDINATOR)
    return {each["name"]: each for each in coordinator["env"]}


def test_the_password_of_a_redis_of_ones_own_may_have_any_characters_and_its_user_too() -> None:
    """In an address some of a Secret's characters would end it."""
    env = environment_of_coordinators(VALUES["own-redis"], "redis.username=a/b@c")
    assert env["HEADGATE_REDIS_PASSWORD"]["valueFrom"] == {"secretKeyRef": {"name": "redis", "key": "password"}}
    assert env["HEADGATE_REDIS"]["value"].startswith("rediss://a%2Fb%40c@")


def test_the_bundled_redis_has_its_password_in_the_address_so_that_an_older_image_finds_it() -> None:
    """A rollback may be of the image alone. This password is made by us, and no character of it ends an address."""
    env = environment_of_coordinators(VALUES["cpu"])
    assert "HEADGATE_REDIS_PASSWORD" not in env
    assert env["HEADGATE_REDIS"]["value"] == "rediss://headgate:$(REDIS_PASSWORD)@headgate-redis:6380/0"


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("insecure", "own-s3")])
def test_clients_reach_services_through_envoy_alone(name: str) -> None:
    found = rendered(name)
    front = find(found, "ConfigMap", "headgate-front")["data"]["front.yaml"]
    for service in (ServiceKind.COORDINATOR, ServiceKind.WRITER):
        pod = service_pods(name)[service]
        env = {each["name"]: each.get("value") for each in container(pod, service)["env"]}
        address, _, port = str(env["HEADGATE_LISTEN"]).partition(":")
        assert address == "127.0.0.1"
        assert f"address: 127.0.0.1, port_value: {port} " in front
        envoy = container(pod, "front")
        assert envoy["restartPolicy"] == "Always", "a sidecar of Kubernetes: it ends after the service that drains"
        assert {"name": "front", "mountPath": "/etc/headgate/front", "readOnly": True} in envoy["volumeMounts"]
        assert "/etc/headgate/front/certificate.yaml" in front


@pytest.mark.parametrize("name", VALUES)
def test_liveness_waits_for_nothing_and_readiness_for_the_service(name: str) -> None:
    for service, pod in service_pods(name).items():
        own = container(pod, service)
        port = int({each["name"]: each.get("value") for each in own["env"]}["HEADGATE_HEALTH_LISTEN"].rpartition(":")[2])
        for probe in ("startupProbe", "livenessProbe"):
            assert own[probe]["grpc"] == {"port": port, "service": LIVE}
        assert own["readinessProbe"]["grpc"] == {"port": port}
        patience = own["livenessProbe"]["failureThreshold"] * own["livenessProbe"]["periodSeconds"]
        assert patience >= 120, "a process on a busy machine is not dead"


@pytest.mark.parametrize("name", VALUES)
def test_a_pod_s_end_leaves_the_time_that_a_drain_takes(name: str) -> None:
    for service, pod in service_pods(name).items():
        drain = next(each["value"] for each in container(pod, service)["env"] if each["name"] == "HEADGATE_DRAIN_TIMEOUT")
        assert pod["spec"]["terminationGracePeriodSeconds"] >= int(drain.removesuffix("s")) + 10


@pytest.mark.parametrize("name", VALUES)
def test_a_writer_s_memory_fits_its_limit(name: str) -> None:
    own = container(service_pods(name)[ServiceKind.WRITER], "writer")
    limit = next(each["value"] for each in own["env"] if each["name"] == "HEADGATE_MEMORY_LIMIT")
    assert amount(own["resources"]["requests"]["memory"]) == int(limit.removesuffix("MiB"))
    assert amount(own["resources"]["limits"]["memory"]) >= int(limit.removesuffix("MiB")) * 1.1


@pytest.mark.parametrize("name", VALUES)
def test_what_pods_mount_somebody_makes(name: str) -> None:
    """Else they would wait for ever. Secrets that are the operator's are named by the values."""
    found = rendered(name)
    given = {"own-s3": {"rows-keys", "clients"}, "insecure": {"rows-keys"}, "adapter": {"azure"}}.get(name, set())
    if name == "own-redis":
        own = {"headgate-tls", *(f"headgate-cluster-{service}" for service in ServiceKind)}
        given = {"google", "redis", "rows-access", *own}
    wanted = set[str]().union(*(secrets_of(pod) for _, pod in pods(found)))
    assert wanted <= made_secrets(found) | given
    assert not [each for each in wanted if each.endswith(("-ca", "-client"))], "no service gets the keys of authorities"


@pytest.mark.parametrize("name", [name for name in VALUES if name != "own-redis"])
def test_the_job_may_touch_its_own_secrets_and_nothing_else(name: str) -> None:
    found = rendered(name)
    role = find(found, "Role", "headgate-credentials")
    (rule,) = role["rules"]
    assert (rule["resources"], rule["verbs"]) == (["secrets"], ["get", "create", "patch"])
    assert set(rule["resourceNames"]) == {f"headgate-{end}" for end in ENDS}
    assert not [each for each in found if each["kind"].startswith("ClusterRole")]


def test_without_anything_to_make_there_is_no_job() -> None:
    kinds = {each["kind"] for each in rendered("own-redis")}
    assert not kinds & {"Job", "CronJob", "Role", "RoleBinding"}


def test_the_job_tries_until_the_cronjob_runs() -> None:
    """Else what it waits for, a certificate of another program, could come in between."""
    (job,) = [each["spec"] for each in rendered("cert-manager") if each["kind"] == "Job"]
    assert job["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert job["backoffLimit"] * 300 >= 24 * 3600, "a kubelet waits for 300 s between later tries"


@pytest.mark.slow
def test_the_job_runs_again_when_what_it_makes_changes() -> None:
    """A Job cannot be changed."""
    names = {
        next(each["metadata"]["name"] for each in manifests(template(VALUES["cpu"], *settings).out) if each["kind"] == "Job")
        for settings in ((), ("credentials.dnsNames={a}",), ("image.tag=v2",))
    }
    assert len(names) == 3


def test_certificates_cover_the_names_that_are_advertised() -> None:
    found = rendered("aws")
    job = next(each for each in found if each["kind"] == "Job")
    names = {word.removeprefix("--dns=") for word in containers(job["spec"]["template"])[0]["args"] if word.startswith("--dns=")}
    assert "headgate" in names
    for service in (ServiceKind.COORDINATOR, ServiceKind.WRITER):
        env = {each["name"]: each.get("value") for each in container(service_pods("aws")[service], service)["env"]}
        assert "*." + str(env["HEADGATE_ADVERTISE"]).partition(".")[2].partition(":")[0] in names
        assert find(found, "Service", f"headgate-{service}")["spec"]["clusterIP"] == "None"


def test_a_lost_machine_is_given_up_soon_and_a_scale_down_takes_one_pod_at_a_time() -> None:
    for _, pod in pods([each for each in rendered("adapter") if each["kind"] in ("Deployment", "StatefulSet")]):
        seconds = {each["key"]: each.get("tolerationSeconds") for each in pod["spec"]["tolerations"]}
        assert seconds["node.kubernetes.io/unreachable"] == seconds["node.kubernetes.io/not-ready"] == 15
    for service, kind in ((ServiceKind.WRITER, "StatefulSet"), (ServiceKind.COMPACTOR, "Deployment")):
        scaler: Any = find(rendered("adapter"), "HorizontalPodAutoscaler", f"headgate-{service}")["spec"]
        assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": kind, "name": f"headgate-{service}"}
        assert scaler["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 60}]
        assert "replicas" not in find(rendered("adapter"), kind, f"headgate-{service}")["spec"], "the HPA's alone"
        keda = find(rendered("keda"), "ScaledObject", f"headgate-{service}")["spec"]["advanced"]["horizontalPodAutoscalerConfig"]
        assert keda["behavior"] == scaler["behavior"]


def test_keda_counts_the_pods_of_its_own_release_alone() -> None:
    found = rendered("keda")
    for service, counted in (("writer", "writer"), ("compactor", "coordinator")):
        triggers = find(found, "ScaledObject", f"headgate-{service}")["spec"]["triggers"]
        (query,) = [each["metadata"]["query"] for each in triggers if each["type"] == "prometheus"]
        for pattern in re.findall(r'pod=~"([^"]+)"', query):
            names = [f"headgate-{counted}-12", f"headgate-test-{counted}-0", f"headgate-{counted}-test-0"]
            assert [bool(re.fullmatch(pattern, name)) for name in names] == [True, False, False]
        assert "pod=~" in query


@pytest.mark.parametrize("name", VALUES)
def test_pods_of_one_part_stand_apart_where_they_can(name: str) -> None:
    """Spread alone is weighed against the load of machines: both writers may land on one, and be lost with it."""
    for service, pod in service_pods(name).items():
        (each,) = pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert each["weight"] == 100, "above all else that the scheduler weighs"
        assert each["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
        assert each["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert each["podAffinityTerm"]["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == service
