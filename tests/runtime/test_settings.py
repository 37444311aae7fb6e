"""Settings: precedence, what people write, and what is refused with exit code 2."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from headgate_runtime.settings import ServiceSettings, load_settings
from headgate_runtime.values import Address, ByteSize, Duration, NamedValues, Words


class Settings(ServiceSettings):
    interval: Duration = Field(10.0, description="how often; price: files")
    memory: ByteSize = Field(256 << 20, description="rows in memory")
    peers: Words = Field(["a:1"], description="whom to ask")
    loud: bool = Field(True, description="says more")
    place: str = Field("", repr=False, description="where it is")
    options: NamedValues = Field({}, repr=False, description="of the place")


def load(*argv: str) -> Settings:
    return load_settings(Settings, argv, prog="svc", about="A service.")


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as ended:
        load(*argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "svc.toml"
    path.write_text('interval = "3s"\nmemory = "1KiB"\npeers = ["x:1", "y:2"]\nlisten = "127.0.0.1:5"\n')
    return path


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_MEMORY", "2KiB")
    monkeypatch.setenv("HEADGATE_INTERVAL", "2s")
    found = load("--config", str(file), "--interval", "1s")
    assert (found.interval, found.memory, found.listen, found.loud) == (1.0, 2048, "127.0.0.1:5", True)


def test_the_environment_can_name_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CONFIG", str(file))
    assert load().peers == ["x:1", "y:2"]


def test_a_list_in_a_flag_or_the_environment_is_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_PEERS", "p:1, q:2,")
    assert load().peers == ["p:1", "q:2"]
    assert load("--peers", "r:3").peers == ["r:3"]
    assert load("--peers", "").peers == []


def test_a_switch_is_turned_on_and_off_by_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not load("--no-loud").loud
    monkeypatch.setenv("HEADGATE_LOUD", "false")
    assert not load().loud
    assert load("--loud").loud


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("10s", 10.0), ("1.5m", 90.0), ("2h", 7200.0), ("30d", 2_592_000.0), (" 3 s ", 3.0)]
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert load("--interval", text).interval == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("17B", 17), ("64KiB", 65536), ("1.5MiB", 1_572_864), ("2GiB", 2 << 30), ("3MB", 3_000_000)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert load("--memory", text).memory == size


@pytest.mark.parametrize("text", ["10", "ten", "10 parsecs", "-1s", "", "1e9s", "10S"])
def test_a_duration_without_a_known_unit_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--interval" in refused(capsys, f"--interval={text}")


@pytest.mark.parametrize("written", ["inf", "nan", "-inf", "-1.0", "1e300", '"40000d"', f'"{"9" * 400}d"'])
def test_a_duration_that_is_no_time_is_refused(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would end the process at the first wait, or at the first message that has it in milliseconds."""
    (file := tmp_path / "svc.toml").write_text(f"interval = {written}\n")
    assert "--interval" in refused(capsys, "--config", str(file))


@pytest.mark.parametrize("written", ["-1", "2e18", '"2000000000GiB"', f'"{"9" * 400}GiB"'])
def test_a_size_that_nothing_has_is_refused(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "svc.toml").write_text(f"memory = {written}\n")
    assert "--memory" in refused(capsys, "--config", str(file))


@pytest.mark.parametrize("written", ["0", "inf", "nan", "-1.0"])
def test_a_rate_of_refusals_is_a_number_above_none(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "svc.toml").write_text(f"refusals = {written}\n")
    assert "--refusals" in refused(capsys, "--config", str(file))


@pytest.mark.parametrize("text", ["10", "10mib", "MiB", "-1B", "10s"])
def test_a_size_without_a_known_unit_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--memory" in refused(capsys, f"--memory={text}")


def test_help_shows_every_setting_with_its_description_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load("--help")
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in text
        assert " ".join(str(field.description).split()) in text
    for default in ("[10s]", "[256MiB]", "[a:1]", "[127.0.0.1:0]"):
        assert default in text


def test_an_unknown_flag_an_unknown_name_in_the_file_and_a_file_that_cannot_be_read_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--colour" in refused(capsys, "--colour", "red")
    stray = tmp_path / "stray.toml"
    stray.write_text("colour = 1\n")
    assert "colour" in refused(capsys, "--config", str(stray))
    assert "gone.toml" in refused(capsys, "--config", str(tmp_path / "gone.toml"))
    for no_toml in (b"colour = = 1\n", b"# \xfc\n"):
        stray.write_bytes(no_toml)
        assert "stray.toml" in refused(capsys, "--config", str(stray))


def test_a_flag_is_not_guessed_from_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--inter" in refused(capsys, "--inter", "1s")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "10.1.2.3:70", "[::]:0", "example.com:70"])
def test_an_address_that_others_reach_needs_tls_and_tokens_or_insecure(
    listen: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tls = ["--tls-cert", "c", "--tls-key", "k", "--advertise", "w.example:70"]
    (file := tmp_path / "svc.toml").write_text('cluster_token = "secret"')
    tokens = ["--access", "t", "--config", str(file)]
    assert "insecure" in refused(capsys, "--listen", listen)
    assert "insecure" in refused(capsys, "--listen", listen, *tls)
    for flags in (tokens, [*tokens, "--insecure"]):
        assert "in plaintext" in refused(capsys, "--listen", listen, *flags)
    load("--listen", listen, *tls, *tokens)
    load("--listen", listen, "--insecure", "--advertise", "w.example:70")


WILDCARDS = ["0.0.0.0:70", "[::]:70", "[]:70", "0:70", "[0:0:0:0:0:0:0:0]:70", "[::ffff:0.0.0.0]:70"]


@pytest.mark.parametrize("every", WILDCARDS)
@pytest.mark.parametrize(("listen", "advertise"), [("listen", "advertise"), ("cluster_listen", "cluster_advertise")])
def test_an_address_of_every_machine_wants_one_at_which_others_reach_this_one(listen: str, advertise: str, every: str) -> None:
    """Services of two machines would have one name, and take each other's leases for their own."""
    given: dict[str, Any] = {listen: every, "insecure": True}
    if listen == "cluster_listen":
        given |= dict.fromkeys(("cluster_cert", "cluster_key", "cluster_ca"), "file.pem")
    for wrong in (given, given | {advertise: every}):
        with pytest.raises(ValueError, match=f": set {advertise} to"):
            ServiceSettings(**wrong)
    ServiceSettings(**given, **{advertise: "w.example:70"})


def test_an_address_of_one_host_is_advertised_as_it_is() -> None:
    for listen in ("10.1.2.3:70", "[fd00::1]:0", "example.com:70", "00.example:70"):
        ServiceSettings(listen=listen, insecure=True)


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u00a0"])
def test_a_host_with_a_blank_is_refused(blank: str) -> None:
    """Coordinators tell each other their addresses as words."""
    for setting in ("listen", "advertise", "cluster_advertise"):
        with pytest.raises(ValueError, match="no blanks"):
            ServiceSettings(**{setting: f"a{blank}b:70"})


@pytest.mark.parametrize(
    ("said", "listens"),
    [("9090", "127.0.0.1:9090"), (":9090", "127.0.0.1:9090"), ("0.0.0.0:9090", "0.0.0.0:9090"), ("[::]:9", "[::]:9"), ("", "")],
)
def test_metrics_are_for_this_machine_alone_unless_a_host_is_named(said: str, listens: str) -> None:
    assert load("--metrics-listen", said).metrics_listen == listens


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:1", "[::1]:0", "localhost:0"])
def test_this_machines_own_addresses_need_nothing(listen: str) -> None:
    assert load("--listen", listen).listen == listen


@pytest.mark.parametrize(
    "wrong",
    [
        ["--tls-cert", "c"],
        ["--tls-key", "k"],
        ["--access", "t"],
        ["--listen", "7070"],
        ["--advertise", "host"],
        ["--listen", "h:99999"],
    ],
)
def test_half_a_certificate_tokens_without_the_clusters_and_half_an_address_are_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, *wrong)


def test_the_clusters_token_is_in_no_message_and_no_repr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_CLUSTER_TOKEN", "hunter2")
    found = load()
    assert "hunter2" not in repr(found)
    assert found.cluster_token.get_secret_value() == "hunter2"
    assert "hunter2" not in refused(capsys, "--interval", "1")
    for no_header in ("hunter2\n", "hunter2 b", "hunter2ä"):
        monkeypatch.setenv("HEADGATE_CLUSTER_TOKEN", no_header)
        assert "cluster_token" in (said := refused(capsys))
        assert "hunter2" not in said


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--cluster-token", "hunter2"),
        ("--place", "redis://user:hunter2@host/0"),
        ("--place", "redis://user:hun/ter2@host/0"),
        ("--place", "redis://host/0?password=hunter2"),
        ("--place", "s3://id:hunter2@bucket/prefix"),
        ("--place", "-----BEGIN PRIVATE KEY-----\nhunter2"),
        *[
            ("--options", f"region=eu,{name}=hunter2")
            for name in (
                "secret_access_key",
                "AWS_SECRET_ACCESS_KEY",
                "session_token",
                "account_key",
                "sas_token",
                "client_secret",
                "bearer_token",
                "proxy_password",
            )
        ],
        ("--options", '{"service_account_key": "hunter2, and more"}'),
        ("--options", "region=eu, endpoint=http://user:hunter2@host"),
    ],
)
def test_a_secret_is_no_flag_and_the_refusal_names_other_places(
    flag: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every user of the machine can read flags."""
    for arguments in ([flag, value], [f"{flag}={value}"]):
        said = refused(capsys, *arguments)
        assert f"HEADGATE_{flag[2:].upper().replace('-', '_')} or the file of --config" in said
        assert "hunter2" not in said
        assert "ter2" not in said


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--options", "access_key_id=a,azure_federated_token_file=/b,sse_kms_key_id=c,sse_bucket_key_enabled=true"),
        ("--options", "endpoint=http://h:1/?a=b,region=eu"),
        ("--place", "abfss://container@account.dfs.core.windows.net/a"),
        ("--place", "redis://user@host:6379/0"),
        ("--place", "file:///a/b:c@d"),
    ],
)
def test_what_only_looks_like_a_secret_may_be_a_flag(flag: str, value: str) -> None:
    load(flag, value)


def test_secrets_of_a_store_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_OPTIONS", "secret_access_key=hunter2")
    assert load().options == {"secret_access_key": "hunter2"}
    assert "hunter2" not in repr(load()) + str(load())


def test_the_content_of_a_key_in_the_place_of_its_path_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADGATE_TLS_KEY", "-----BEGIN PRIVATE KEY-----\nhunter2")
    monkeypatch.setenv("HEADGATE_TLS_CERT", "cert.pem")
    assert "tls_key is the content" in (said := refused(capsys))
    assert "hunter2" not in said


def test_settings_do_not_change() -> None:
    found: Any = load()
    with pytest.raises(ValueError, match="frozen"):
        found.listen = "127.0.0.1:1"


def test_what_is_advertised_is_the_bound_address_unless_set() -> None:
    assert load().advertised("127.0.0.1:77") == "127.0.0.1:77"
    assert load("--advertise", "w.example:80").advertised("127.0.0.1:77") == "w.example:80"
    assert load("--advertise", "w.example:0").advertised("127.0.0.1:77") == "w.example:77"


def test_an_address_survives_text() -> None:
    for text in ("127.0.0.1:0", "[::1]:7070", "host-1.example:65535"):
        assert str(Address.parse(text)) == text
