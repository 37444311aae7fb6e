from pathlib import Path

import pytest

from headgate_tables.errors import OptionError
from headgate_tables.storage.address import Scheme, read_address
from headgate_tables.storage.open import check_below, open_store
from headgate_tables.storage.store import Outcome
from headgate_tables.system import SystemIds
from support.s3 import S3Endpoint
from support.stores import Endpoint
from tables.storage.conftest import fresh_name


@pytest.mark.parametrize("form", ["{path}", "file://{url}", "file:{url}", "file://localhost{url}", "{path}/", "FILE://{url}/"])
def test_a_local_folder_is_named_by_a_path_or_a_file_url(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "a b%20c"
    url = str(folder).replace("%", "%25").replace(" ", "%20")
    store = open_store(form.format(path=folder, url=url), None, SystemIds())
    store.create("file", [b"x"], durable=False)
    assert (folder / "file").read_bytes() == b"x"
    assert store.url == f"file://{url}"


def test_a_relative_path_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("table", {}, SystemIds())
    monkeypatch.chdir("/")
    store.create("file", [b"x"], durable=False)
    assert (tmp_path / "table/file").read_bytes() == b"x"


@pytest.mark.parametrize("prefix", ["", "/", "/table", "/a/b%20c/", "/a#b?c"])
def test_a_bucket_and_a_literal_prefix_are_named_by_an_s3_url(s3: S3Endpoint, bucket: str, prefix: str) -> None:
    store = open_store(f"s3://{bucket}{prefix}", s3.options, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED
    assert s3.keys(bucket) == [f"{prefix}/file".replace("//", "/").lstrip("/")]
    assert store.url == f"s3://{bucket}{prefix}".rstrip("/")


def test_settings_may_come_from_the_environment(s3: S3Endpoint, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    store = open_store(f"s3://{bucket}/table", None, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED
    assert s3.keys(bucket) == ["table/file"]


def test_given_settings_come_before_the_environment(s3: S3Endpoint, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    store = open_store(f"s3://{bucket}/table", {**s3.options, "timeout": "10s", "connect_timeout": "2s"}, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED


@pytest.mark.parametrize("prefix", ["", "/", "/table", "/a/b%20c/", "/a#b?c"])
def test_a_bucket_of_any_service_and_a_literal_prefix_are_named_by_a_url(server: Endpoint, prefix: str) -> None:
    bucket = server.make_bucket(fresh_name())
    store = open_store(f"{bucket}{prefix}", server.options, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED
    assert server.keys(bucket.partition("://")[2]) == [f"{prefix}/file".replace("//", "/").lstrip("/")]
    assert store.url == f"{bucket}{prefix}".rstrip("/")


GOOGLE = {"base_url": "GOOGLE_BASE_URL", "bearer_token": "GOOGLE_BEARER_TOKEN"}
AZURE = {
    "account_name": "AZURE_STORAGE_ACCOUNT_NAME",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "endpoint": "AZURE_STORAGE_ENDPOINT",
}


@pytest.mark.parametrize(("server", "names"), [("gcs", GOOGLE), ("azurite", AZURE)], indirect=["server"])
def test_credentials_may_come_from_the_environment(
    server: Endpoint, names: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, variable in names.items():
        monkeypatch.setenv(variable, server.options[setting])
    for elsewhere in ("GOOGLE_BUCKET", "AZURE_CONTAINER_NAME"):
        monkeypatch.setenv(elsewhere, "another")
    store = open_store(address, {"allow_http": "true"}, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED
    assert server.keys(address.split("/")[2]) == ["some/table/file"]


@pytest.mark.parametrize("server", ["azurite"], indirect=True)
def test_an_address_as_hadoop_has_it_names_the_account(server: Endpoint, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "another")
    account, container = server.options["account_name"], address.split("/")[2]
    url = f"abfss://{container}@{account}.dfs.core.windows.net/some/table"
    options = {name: value for name, value in server.options.items() if name != "account_name"}
    store = open_store(url, options, SystemIds())
    assert store.create("file", [b"x"], durable=True) is Outcome.CREATED
    assert server.keys(container) == ["some/table/file"]
    assert store.url == url


def test_an_address_in_another_cloud_names_the_endpoint() -> None:
    read = read_address("abfss://c@account.dfs.core.chinacloudapi.cn/a/b", Scheme.ABFSS)
    assert read.settings == {"account_name": "account", "endpoint": "https://account.blob.core.chinacloudapi.cn"}
    assert (read.bucket, read.prefix) == ("c", "a/b")


def test_a_store_without_an_account_is_refused_with_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(OptionError, match=r"Account must be specified.*AZURE_STORAGE_ACCOUNT_NAME"):
        open_store("az://container/table", None, SystemIds())


def test_a_file_of_credentials_that_is_not_there_is_named() -> None:
    with pytest.raises(OptionError, match=r"/nowhere.json.*GOOGLE_APPLICATION_CREDENTIALS"):
        open_store("gs://bucket/table", {"service_account": "/nowhere.json"}, SystemIds())


@pytest.mark.parametrize(
    "url",
    ["gcs://bucket/a", "wasbs://c@a.blob.core.windows.net/a", "hdfs://host/a", "hdfs:/a", "s3a://bucket/a", "https://host/a"],
)
def test_another_scheme_is_refused_with_those_that_work(url: str) -> None:
    with pytest.raises(
        OptionError,
        match=r"not supported\. Use s3://bucket/prefix, gs://.*, file:///absolute/path or a plain path",
    ):
        open_store(url, None, SystemIds())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file://",
        "file://host/a",
        "s3://",
        "s3:/bucket",
        "s3:///a",
        "s3://b/a//c",
        "s3://b/../c",
        "gs://",
        "az:///a",
        "abfss://c/a",
        "abfss://c@a/b",
        "a\0b",
        "s3://169.254.169.254#/a",
        "s3://bucket:80/a",
        "abfss://c?@a.dfs.core.windows.net/a",
    ],
)
def test_an_address_that_names_nothing_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match=r"names no folder|a file URL has a host|is not an address in a bucket"):
        open_store(url, None, SystemIds())


def test_settings_for_a_local_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="storage_options given for a local folder"):
        open_store(str(tmp_path), {"region": "us-east-1"}, SystemIds())


@pytest.mark.parametrize(
    ("options", "told"),
    [({"regoin": "x"}, "regoin"), ({"virtual_hosted_style_request": "perhaps"}, "perhaps"), ({"timeout": "soon"}, "soon")],
)
def test_a_setting_that_is_unknown_or_unreadable_is_named(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        open_store("s3://bucket/table", options, SystemIds())


@pytest.mark.parametrize("url", ["s3://bucket/table", "gs://bucket/table", "abfss://c@account.dfs.core.windows.net/table"])
def test_a_setting_that_a_service_does_not_know_is_named(url: str) -> None:
    with pytest.raises(OptionError, match=r"regoin.*obstore's names"):
        open_store(url, {"regoin": "x"}, SystemIds())


@pytest.mark.parametrize("host", ["evil.example", "169.254.169.254.nip.io", "core.windows.net.evil.example", "localhost"])
def test_an_address_takes_no_credentials_to_a_host_that_is_no_cloud(host: str) -> None:
    with pytest.raises(OptionError, match=rf"{host} is not a cloud of Azure's\. .*give its endpoint in storage_options"):
        open_store(f"abfss://c@account.dfs.{host}/table", {"account_key": "c2VjcmV0"}, SystemIds())


BELOW = [
    ("/data/tables/t", "/data/tables"),
    ("file:///data/tables/p/t", "/data/tables/"),
    ("/data/x/../tables/t", "file:///data/tables"),
    ("s3://bucket/a/b", "s3://bucket/a"),
    ("s3://bucket/a", "S3://bucket"),
    ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net"),
]
ELSEWHERE = [
    ("/data/tables", "/data/tables"),
    ("/data/tables/../t", "/data/tables"),
    ("file:///data/tables/%2e%2e/t", "/data/tables"),
    ("/data/tables-of-others/t", "/data/tables"),
    ("file:///etc", "/data/tables"),
    ("s3://bucket/a", "/data/tables"),
    ("s3://other/a/b", "s3://bucket/a"),
    ("s3://bucket/ab", "s3://bucket/a"),
    ("gs://bucket/a/b", "s3://bucket/a"),
    ("abfss://c@another.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net"),
    ("http://169.254.169.254/latest", "/"),
]


@pytest.mark.parametrize(("url", "root"), BELOW)
def test_what_lies_below_the_root_is_opened(url: str, root: str) -> None:
    check_below(url, root)


@pytest.mark.parametrize(("url", "root"), ELSEWHERE)
def test_what_lies_elsewhere_is_not(url: str, root: str) -> None:
    with pytest.raises(OptionError, match=r"does not lie below|is not supported"):
        check_below(url, root)


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        f"s3://id:{SECRET}@bucket/t",
        f"s3://id:a/{SECRET}@bucket/t",
        f"gs://{SECRET}@bucket/t",
        f"az://a:{SECRET}@container/t",
        f"az://container/t?sv=2022&sig={SECRET}",
        f"abfss://a:{SECRET}@account.dfs.core.windows.net/t",
        f"https://user:{SECRET}@localhost/t",
        f"https://account.blob.core.windows.net/container?sig={SECRET}",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    """Addresses are in logs, in answers and in errors."""
    with pytest.raises(OptionError, match="credentials stand in the address") as refused:
        open_store(url, None, SystemIds())
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secret_access_key", f"{SECRET}\n"),
        ("session_token", f"{SECRET}\r"),
        ("endpoint", f"http://user:{SECRET}@localhost:1"),
    ],
)
def test_a_value_that_no_request_can_hold_or_errors_would_repeat_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore panics on the one and puts the other into every error."""
    for options, variable in (({name: value}, "REGION"), ({}, name.upper())):
        with monkeypatch.context() as patch:
            patch.setenv(f"AWS_{variable}", value if variable != "REGION" else "eu")
            with pytest.raises(OptionError, match=name if options else f"AWS_{variable}") as refused:
                open_store("s3://bucket/t", options, SystemIds())
        assert SECRET not in str(refused.value)


def test_a_proxy_may_want_a_password() -> None:
    open_store("s3://bucket/t", {"proxy_url": "http://user:password@localhost:1"}, SystemIds())
