"""What docs/kubernetes.md tells people to type is what the chart, the command and the SDK take."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

import headgate
from headgate_cli.credentials.renewal import Part, Wanted, renewed
from headgate_cli.kubernetes.layout import ENDS, secrets_with
from headgate_cli.main import headgate as program
from headgate_runtime.world import World
from support.helm import CHART, RENDERED, VALUES, VERSION, Manifest, helm, made_secrets, manifests, pods, secrets_of, template
from support.pages import ROOT, fenced, quoted

PAGE = "docs/kubernetes.md"
SCHEMA: Mapping[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
SETTING = re.compile(r"(?:--set )?((?:[a-z]\w*)?(?:\.\w+)*)(?:=(.+))?")
STORE = "store=s3://rows/lake"
WITH: Mapping[str, tuple[str, ...]] = {
    "redis.bundled=false": ("redis.address=redis.example.org:6379", "redis.existingSecret=redis"),
    "autoscaling.metrics=keda": ("autoscaling.prometheus=http://prometheus:9090",),
}
"""What a value needs besides."""
NAMED = re.compile(r"\b(statefulset|deployment|cronjob|job)/(headgate-[a-z]+)")
SHOWN = [line for block in fenced(PAGE, "sh") for line in block.replace("\\\n", " ").splitlines()]
"""The commands of blocks, one a line."""


def paths_of(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from paths_of(inner, f"{path}{name}.")


KNOWN = frozenset(paths_of(SCHEMA))


def named_values() -> Iterator[tuple[str, str]]:
    """Paths of the chart's values that the page names, with what it sets them to. ``.cpu`` stands beside the one before."""
    before = ""
    for text in quoted(PAGE):
        found = SETTING.fullmatch(text)
        path, value = (found[1], found[2] or "") if found else ("", "")
        path = before.rpartition(".")[0] + path if path.startswith(".") else path
        if path.partition(".")[0] in SCHEMA["properties"]:
            before = path
            yield path, value


def command(start: str) -> list[str]:
    """The words of the one command of the page that begins so."""
    (found,) = [line for line in SHOWN if line.startswith(start)]
    return shlex.split(found)


@cache
def installed() -> list[Manifest]:
    """What the page's `helm install` would make."""
    words = [ROOT / word if word.startswith("deploy/") else word for word in command("helm install")[2:]]
    said = helm("template", *words, "--kube-version", VERSION)
    assert said.code == 0, said.errors
    return manifests(said.out)


def test_the_page_names_no_value_that_the_chart_does_not_have() -> None:
    named = {path for path, _ in named_values()}
    assert len(named) > 20
    assert named <= KNOWN
    words = {text for text in quoted(PAGE) if re.fullmatch(r"[a-z]+[A-Z]\w*", text)}
    assert words <= {path.rpartition(".")[2] for path in KNOWN}


@pytest.mark.parametrize("setting", [f"{path}={value}" for path, value in named_values() if value])
def test_the_chart_takes_a_value_as_the_page_sets_it(setting: str) -> None:
    said = template(None, STORE, setting, *WITH.get(setting, ()))
    assert said.code == 0, said.errors


def test_what_is_installed_as_the_page_says_waits_for_the_secret_that_it_makes() -> None:
    secret = command("kubectl -n headgate create secret")
    needed = {name for _, pod in pods(installed()) for name in secrets_of(pod)}
    assert secret[secret.index("generic") + 1] in needed
    assert needed - made_secrets(installed()) == {secret[secret.index("generic") + 1]}


def test_the_page_names_workloads_and_secrets_that_there_are() -> None:
    there = {(each["kind"].lower(), each["metadata"]["name"]) for each in installed()}
    named = {found for text in (*SHOWN, *quoted(PAGE)) for found in NAMED.findall(text)}
    assert len(named) > 3
    of_jobs = {(kind, re.sub(r"-\w+$", "", name)) for kind, name in there if kind == "job"}  # they end with a digest: "-…"
    assert {(kind, name.removesuffix("-")) for kind, name in named} <= there | of_jobs
    ends = {text for text in quoted(PAGE) if re.fullmatch(r"(RELEASE|headgate)-[a-z-]+[a-z]", text)}
    names = {text.replace("RELEASE", "headgate") for text in ends}
    assert names <= {name for _, name in there} | {f"headgate-{end}" for end in ENDS}


def test_the_file_for_a_trial_lies_where_the_page_says() -> None:
    (applied,) = [text for text in quoted(PAGE) if "kubectl apply" in text]
    assert ROOT / shlex.split(applied)[-1] == RENDERED


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The Secret RELEASE-client, mounted."""
    wanted = Wanted(hosts=["headgate"], parts=frozenset({Part.TLS, Part.ACCESS}))
    texts = renewed({}, wanted, datetime.now(UTC), World.real().ids)
    for key, text in secrets_with({}, texts)["client"].items():
        (tmp_path / key).write_text(text)
    return tmp_path


def test_the_program_of_the_page_finds_its_credentials_in_the_secret(client: Path) -> None:
    (code,) = fenced(PAGE, "python")
    made = eval(code.replace("/etc/headgate", str(client)), {"headgate": headgate, "Path": Path})
    made.close()


def test_the_commands_of_the_page_have_options_that_there_are(client: Path) -> None:
    shown = [shlex.split(text) for text in quoted(PAGE) if text.startswith("headgate ") and "--" in text]
    assert shown
    for _, name, *words in shown:
        arguments = [word.replace("/etc/headgate", str(client)) for word in words]
        context = click.Context(program)
        found = program.get_command(context, name)
        assert found is not None
        found.make_context(name, arguments, parent=context)


def test_the_pod_for_commands_is_one_of_kubernetes_with_secrets_that_there_are() -> None:
    pod = yaml.safe_load(fenced(PAGE, "yaml")[0])
    kubernetes_validate.validate(pod, VERSION, strict=True)
    assert secrets_of(pod) == {"rows-keys", "headgate-client"}
    (used,) = [shlex.split(text) for text in quoted(PAGE) if text.startswith("kubectl -n headgate exec")]
    assert used[4] == pod["metadata"]["name"]
    assert used[used.index("--token-file") + 1].startswith(pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"])


def test_the_rules_for_prometheus_adapter_make_the_metrics_that_the_chart_asks_for() -> None:
    _, block = fenced(PAGE, "yaml")
    made = {rule["name"]["as"] for rule in yaml.safe_load(block)["externalRules"]}
    scalers = [each for each in manifests(template(VALUES["adapter"]).out) if each["kind"] == "HorizontalPodAutoscaler"]
    metrics = [metric for each in scalers for metric in each["spec"]["metrics"] if metric["type"] == "External"]
    assert {metric["external"]["metric"]["name"] for metric in metrics} == made
