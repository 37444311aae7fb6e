"""`headgate kubernetes credentials` against an API that keeps Secrets."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.kubernetes import api as api_module
from headgate_cli.main import run
from support.kubernetes_api import KubernetesApi, kubernetes_api

ARGUMENTS = (
    *("kubernetes", "credentials", "--name", "rows", "--label", "app.kubernetes.io/instance=rows"),
    *("--part", "tls", "--part", "cluster", "--part", "access", "--dns", "rows"),
)
BESIDE_CERT_MANAGER = (
    *("kubernetes", "credentials", "--name", "rows"),
    *("--part", "access", "--part", "redis", "--redis-dns", "rows-redis"),
)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    with kubernetes_api(tmp_path) as made:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "localhost")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(made.port))
        monkeypatch.setattr(api_module, "ACCOUNT", made.account)
        yield made


def test_it_makes_what_is_missing_once(cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ARGUMENTS) == ExitCode.OK
    assert cluster.applied[0] == "rows-ca"
    assert set(cluster.applied) == {
        *("rows-ca", "rows-tls", "rows-cluster-coordinator", "rows-cluster-writer", "rows-cluster-compactor"),
        *("rows-access", "rows-client"),
    }
    assert cluster.secrets["rows-tls"]["type"] == "kubernetes.io/tls"
    assert cluster.secrets["rows-access"]["type"] == "Opaque"
    assert cluster.secrets["rows-tls"]["metadata"]["labels"] == {"app.kubernetes.io/instance": "rows"}
    said = capsys.readouterr()
    assert cluster.content("rows-client")["token"].decode() not in said.out + said.err
    count = len(cluster.applied)
    assert run(ARGUMENTS) == ExitCode.OK
    assert len(cluster.applied) == count
    assert "Nothing is due" in capsys.readouterr().out


@pytest.mark.parametrize("end", ["tls", "cluster-writer", "redis-tls", "redis", "s3"])
def test_a_secret_that_was_deleted_is_made_anew_whole_and_no_other(end: str, cluster: KubernetesApi) -> None:
    """A pod whose Secret lacks the authority, which other Secrets still have, would not start."""
    everything = (*ARGUMENTS, "--part", "redis", "--part", "redis-tls", "--part", "s3", "--redis-dns", "rows-redis")
    run(everything)
    before = cluster.secrets.pop(f"rows-{end}")
    cluster.applied.clear()
    assert run(everything) == ExitCode.OK
    assert cluster.applied == [f"rows-{end}"]
    assert cluster.secrets[f"rows-{end}"]["data"].keys() == before["data"].keys()


def test_an_authority_that_a_secret_lacks_is_put_back(cluster: KubernetesApi) -> None:
    run(ARGUMENTS)
    data = cluster.secrets["rows-cluster-writer"]["data"]
    lost = data.pop("ca.crt")
    cluster.applied.clear()
    assert run(ARGUMENTS) == ExitCode.OK
    assert cluster.applied == ["rows-cluster-writer"]
    assert cluster.secrets["rows-cluster-writer"]["data"]["ca.crt"] == lost


def test_a_client_s_secret_that_was_deleted_gets_another_token(cluster: KubernetesApi) -> None:
    run(ARGUMENTS)
    before = cluster.content("rows-client")
    del cluster.secrets["rows-client"]
    cluster.applied.clear()
    assert run(ARGUMENTS) == ExitCode.OK
    assert set(cluster.applied) == {"rows-access", "rows-client"}
    assert cluster.content("rows-client")["token"] != before["token"]
    assert cluster.content("rows-client")["ca.crt"] == before["ca.crt"]
    assert b"expires = " in cluster.content("rows-access")["access.toml"]


def test_a_client_s_secret_without_its_authority_is_tried_again_until_others_have_made_the_certificate(
    cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert run(BESIDE_CERT_MANAGER) == ExitCode.RETRY_LATER
        said = capsys.readouterr().err
        assert "no certificate in the Secret rows-tls yet" in said
        assert "`kubectl describe certificate`" in said
        assert sorted(cluster.applied) == ["rows-access", "rows-client", "rows-redis"], "services wait for nothing else"
    token = cluster.content("rows-client")["token"]
    cluster.put("rows-tls", {"tls.crt": "leaf", "tls.key": "key", "ca.crt": "authority"})
    assert run(BESIDE_CERT_MANAGER) == ExitCode.OK
    assert cluster.content("rows-client") == {"token": token, "ca.crt": b"authority"}
    assert run(BESIDE_CERT_MANAGER) == ExitCode.OK
    assert "Nothing is due" in capsys.readouterr().out
    assert cluster.applied[3:] == ["rows-client"]


def test_a_certificate_whose_issuer_gives_no_authority_is_not_waited_for(
    cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.put("rows-tls", {"tls.crt": "leaf", "tls.key": "key"})
    assert run(BESIDE_CERT_MANAGER) == ExitCode.OK
    assert cluster.content("rows-client").keys() == {"token"}
    assert "rows-tls has no ca.crt" in capsys.readouterr().out


def test_an_access_file_that_takes_no_further_token_stays_and_says_why(
    cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]
) -> None:
    run(ARGUMENTS)
    ours = base64.b64encode(f'tokens = {{ "sha256:{64 * "0"}" = {{ principal = "ann" }} }}\n'.encode()).decode()
    cluster.secrets["rows-access"]["data"]["access.toml"] = ours
    cluster.applied.clear()
    assert (run(ARGUMENTS), cluster.applied) == (ExitCode.OK, []), "the token is there, so its line was taken out"
    del cluster.secrets["rows-client"]
    assert (run(ARGUMENTS), cluster.applied) == (ExitCode.OPERATOR, [])
    assert "the access file takes no further token" in capsys.readouterr().err
    del cluster.secrets["rows-tls"]
    assert (run(ARGUMENTS), cluster.applied) == (ExitCode.OPERATOR, ["rows-tls"]), "certificates do not wait for that"


def test_a_role_that_leaves_a_secret_out_is_named(cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.forbidden.add("rows-access")
    assert run(ARGUMENTS) == ExitCode.OPERATOR
    said = capsys.readouterr().err
    assert "rows-access" in said
    assert "Role" in said


def test_a_secret_that_is_no_text_is_named(cluster: KubernetesApi, capsys: pytest.CaptureFixture[str]) -> None:
    run(ARGUMENTS)
    cluster.secrets["rows-client"]["data"]["token"] = base64.b64encode(b"\xff\xfe").decode()
    count = len(cluster.applied)
    assert run(ARGUMENTS) == ExitCode.OPERATOR
    assert "token of the Secret rows-client is no UTF-8 text" in capsys.readouterr().err
    assert len(cluster.applied) == count, "nothing was written over it"


def test_an_api_with_another_certificate_gets_no_token(
    cluster: KubernetesApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with kubernetes_api(tmp_path / "other") as other:
        (cluster.account / "ca.crt").write_bytes((other.account / "ca.crt").read_bytes())
    assert run(ARGUMENTS) == ExitCode.RETRY_LATER
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err
    assert not cluster.applied


def test_outside_of_a_pod_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(api_module, "ACCOUNT", tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert run(ARGUMENTS) == ExitCode.OPERATOR
    assert "no pod" in capsys.readouterr().err


def test_names_that_a_part_needs_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("kubernetes", "credentials", "--name", "rows", "--part", "tls")) == ExitCode.USAGE
    assert "--dns" in capsys.readouterr().err
