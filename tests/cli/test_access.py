"""`headgate access`: tokens that count, and answers that name the line."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_runtime.access.file import read_access_file
from headgate_runtime.access.identity import Credentials, Identity
from headgate_runtime.access.tokens import FileTokens
from support.access import access_text, role, token_line

Said = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Lines: tokens 2 and 3, roles 8 and 13."""
    text = access_text(
        {"t": "ann"},
        role("@ops", "operate"),
        role("ann", "write", tables=["a*"], channels=["{principal}/"]),
        groups={"ops": ["bob"]},
    )
    found = tmp_path / "access.toml"
    found.write_text(text.replace("[tokens]\n", "[tokens]\n" + token_line("old", "ann", "2020-01-01T00:00:00Z")))
    return found


def objects(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.readouterr().out.splitlines()]


@pytest.mark.parametrize(("expires", "days"), [("90d", 90), ("12h", 0.5)])
def test_a_token_counts_with_the_line_that_is_printed_with_it(expires: str, days: float, capsys: Said) -> None:
    assert run(["access", "token", "loader", "--expires", expires, "--json"]) == ExitCode.OK
    [made] = objects(capsys)
    tokens = FileTokens(read_access_file(f"[tokens]\n{made['line']}\n").tokens)
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    identity = tokens.identify(Credentials(f"Bearer {made['token']}"), now_ms)
    assert isinstance(identity, Identity)
    assert identity.principal == "loader"
    assert identity.expires_ms is not None
    assert abs(identity.expires_ms - now_ms - days * 86_400_000) < 3_600_000
    assert made["token"] not in made["line"]


def test_a_token_ends_when_it_is_said_or_never(capsys: Said) -> None:
    ends = []
    for expires in ("2027-01-31T01:00:00+01:00", "2027-01-31T00:00:00Z", "never"):
        assert run(["access", "token", 'we"ird\\', "--expires", expires, "--json"]) == ExitCode.OK
        [made] = objects(capsys)
        [entry] = read_access_file(f"[tokens]\n{made['line']}\n").tokens
        assert entry.principal == 'we"ird\\'
        ends.append(entry.expires_ms)
    at = 1_801_353_600_000
    assert ends == [at, at, None]


def test_people_see_the_token_once_and_the_line_beneath(capsys: Said) -> None:
    assert run(["access", "token", "loader"]) == ExitCode.OK
    said = capsys.readouterr().out.splitlines()
    assert said[1].strip().startswith("hg_")
    assert said[3].strip().startswith('"sha256:')


@pytest.mark.parametrize(
    "wrong",
    [
        ["cluster"],
        ["a b"],
        ["a", "--expires", "soon"],
        ["a", "--expires", "2027-01-31"],
        ["a", "--expires", "2027-01-31T00:00:00"],
    ],
)
def test_a_name_or_an_end_that_is_none_is_refused(wrong: list[str], capsys: Said) -> None:
    assert run(["access", "token", *wrong]) == ExitCode.USAGE
    assert "hg_" not in capsys.readouterr().out


def test_the_list_has_tokens_and_roles_with_their_lines(path: Path, capsys: Said) -> None:
    assert run(["access", "list", "--access", str(path), "--json"]) == ExitCode.OK
    found = objects(capsys)
    assert [(each["kind"], each["line"]) for each in found] == [("token", 2), ("token", 3), ("role", 8), ("role", 13)]
    assert [(each["principal"], each["expired"]) for each in found[:2]] == [("ann", True), ("ann", False)]
    assert found[3]["channels"] == ["{principal}/"]
    assert run(["access", "list", "--access", str(path), "--principal", "bob", "--json"]) == ExitCode.OK
    assert [each["line"] for each in objects(capsys)] == [8]
    assert run(["access", "list", "--access", str(path)]) == ExitCode.OK
    assert "operate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (["ann", "write", "a1"], 13),
        (["ann", "read", "a1"], 13),
        (["ann", "write", "a1", "--channel", "ann/1"], 13),
        (["ann", "write", "a1", "--channel", "bob/1"], None),
        (["ann", "write", "b"], None),
        (["ann", "operate", "a1"], None),
        (["ann", "operate", "a1", "--group", "ops"], 8),
        (["bob", "operate", "b"], 8),
        (["eve", "read", "a1"], None),
        (["cluster", "read", "a1"], None),
    ],
)
def test_a_check_says_yes_or_no_and_by_which_line(asked: list[str], line: int | None, path: Path, capsys: Said) -> None:
    code = run(["access", "check", *asked, "--access", str(path), "--json"])
    [answer] = objects(capsys)
    assert (code, answer["allowed"], answer.get("line")) == (ExitCode.OK if line else ExitCode.PROBLEMS, bool(line), line)
    assert answer["tokens"] == (1 if asked[0] == "ann" else 0)


def test_people_read_which_line_allows_it_and_through_which_channels(path: Path, capsys: Said) -> None:
    assert run(["access", "check", "ann", "write", "a1", "--access", str(path)]) == ExitCode.OK
    assert f"yes, by the role on line 13 of {path}, through channels that begin with 'ann/'" in capsys.readouterr().out
    assert run(["access", "check", "bob", "write", "a1", "--access", str(path)]) == ExitCode.PROBLEMS
    said = capsys.readouterr().out
    assert "no: 'bob' lacks the right `write` on the table 'a1'" in said
    assert "bob has no token" in said


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("loader.example.org", ExitCode.OK, "certificates name it by the DNS name loader.example.org"),
        ("spiffe://example.org/loader", ExitCode.OK, "certificates name it by the SPIFFE id spiffe://example.org/loader"),
        ("Loader.example.org", ExitCode.OK, "no certificate can name it: want one SPIFFE id"),
        ("other.example.org", ExitCode.PROBLEMS, "'cert:other.example.org' lacks the right `write`"),
    ],
)
def test_a_check_knows_principals_that_certificates_name(name: str, code: ExitCode, said: str, path: Path, capsys: Said) -> None:
    named = ("loader.example.org", "spiffe://example.org/loader", "Loader.example.org")
    path.write_text(access_text({}, *(role(f"cert:{each}", "write", tables=["a*"]) for each in named)))
    assert run(["access", "check", f"cert:{name}", "write", "a1", "--access", str(path)]) == code
    shown = capsys.readouterr().out
    assert said in shown
    assert "has no token" not in shown


def test_a_wrong_file_is_named_with_its_line(path: Path, capsys: Said) -> None:
    path.write_text("[tokens]\n\nann = 1\n")
    assert run(["access", "list", "--access", str(path)]) == ExitCode.FIX_CALL
    assert f"{path}: line 3: want" in capsys.readouterr().err
    assert run(["access", "list", "--access", str(path.parent / "none")]) == ExitCode.FIX_CALL
    assert run(["access", "list"]) == ExitCode.USAGE


@pytest.fixture
def limited(path: Path) -> Path:
    """With a role on line 19, and quotas on lines 24 and 29."""
    quotas = """
[[quotas]]
groups = ["jwt:ingest"]
rows_per_s = 500
channels = 7

[[quotas]]
principals = ["ann"]
rows_per_s = 900
bytes_per_s = "unlimited"
"""
    path.write_text(path.read_text() + "\n" + role("@jwt:ingest", "write") + quotas)
    return path


def test_the_list_has_quotas_and_the_claims_of_signed_tokens_that_lead_to_roles_and_quotas(limited: Path, capsys: Said) -> None:
    asked = ["access", "list", "--access", str(limited), "--jwt-groups", "realm_access.roles"]
    assert run([*asked, "--json"]) == ExitCode.OK
    found = objects(capsys)
    roles, quotas = ([each for each in found if each["kind"] == kind] for kind in ("role", "quota"))
    assert [each["from_claims"] for each in roles] == [[], [], ["realm_access.roles=ingest"]]
    assert [(each["from_claims"], each["rows_per_s"], each["bytes_per_s"], each["channels"]) for each in quotas] == [
        (["realm_access.roles=ingest"], 500, None, 7),
        ([], 900, "unlimited", None),
    ]
    assert [limited.read_text().splitlines()[each["line"] - 1] for each in (*roles, *quotas)] == ["[[roles]]"] * 3 + [
        "[[quotas]]"
    ] * 2
    assert run([*asked, "--principal", "ann", "--json"]) == ExitCode.OK
    assert [each["rows_per_s"] for each in objects(capsys) if each["kind"] == "quota"] == [900]
    assert run(asked) == ExitCode.OK
    assert "realm_access.roles=ingest" in capsys.readouterr().out


def test_a_check_says_within_which_quotas_and_by_which_claim_signed_tokens_name_the_principal(
    limited: Path, capsys: Said
) -> None:
    asked = ["access", "check", "jwt:eve", "write", "b", "--group", "jwt:ingest", "--access", str(limited)]
    assert run([*asked, "--json"]) == ExitCode.OK
    [answer] = objects(capsys)
    assert answer["quotas"] == {"rows_per_s": 500, "channels": 7}
    assert run(asked) == ExitCode.OK
    said = capsys.readouterr().out
    assert "at most 500 rows_per_s" in said
    assert "by the claim sub" in said
    assert "has no token" not in said


def test_a_check_names_the_default_quota_too(path: Path, capsys: Said) -> None:
    assert run(["access", "check", "ann", "read", "a", "--access", str(path), "--json"]) == ExitCode.OK
    assert objects(capsys)[0]["quotas"] == {"channels": 1000}
