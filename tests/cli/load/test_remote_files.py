"""Files of buckets and of web servers are loaded as those of this machine, under their addresses."""

import http.server
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.dev_cluster import DevCluster
from demo.ports import free_port
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.load.inputs import input_files
from headgate_cli.load.remote import remote_files
from headgate_cli.output import Output
from headgate_tables.errors import TablesError
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from support.azurite import azurite
from support.counting import CountingStore
from support.readers import read_by_hudi_rs, without_meta
from support.s3 import S3Endpoint, real_s3

CSV = "id,name\n" + "".join(f"{number},n{number}\n" for number in range(5_000))


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        body = CSV.encode()
        self.send_response(
            200
            if path in ("/a%20b.csv", "/cut.csv", "/M%C3%BCll%20a.csv")
            and query in ("", "X-Amz-Signature=secret", "X-Amz-Signature=secret%20%C3%BC")
            else 503
            if path == "/busy.csv"
            else 404
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: -1_000 if path == "/cut.csv" else None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Endpoint]:
    with real_s3(tmp_path_factory.mktemp("s3")) as endpoint:
        endpoint.make_bucket("files")
        client = endpoint.client()
        client.put_object(Bucket="files", Key="all.csv", Body=CSV.encode())
        client.put_object(Bucket="files", Key="odd/a[1].csv", Body=b"id\n1\n")
        client.put_object(Bucket="files", Key="odd/notes.txt", Body=b"no data")
        for day in (1, 2):
            kept = io.BytesIO()
            pq.write_table(pa.table({"id": pa.array(range(day * 100, day * 100 + 50), pa.int64())}), kept)
            client.put_object(Bucket="files", Key=f"events/day=2026-01-0{day}/part.parquet", Body=kept.getvalue())
            client.put_object(Bucket="files", Key=f"events/day=2026-01-0{day}/_SUCCESS", Body=b"")
        client.close()
        yield endpoint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "keys"),
    [
        ("s3://files/all.csv", ["all.csv"]),
        ("s3://files/*.csv", ["all.csv"]),
        ("s3://files/odd/a[1].csv", ["odd/a[1].csv"]),
        ("s3://files/odd", ["odd/a[1].csv"]),
        ("s3://files/odd/*", ["odd/a[1].csv", "odd/notes.txt"]),
        ("s3://files/events/", ["events/day=2026-01-01/part.parquet", "events/day=2026-01-02/part.parquet"]),
        ("s3://files/**/*.parquet", ["events/day=2026-01-01/part.parquet", "events/day=2026-01-02/part.parquet"]),
        ("s3://files/events/day=2026-01-0[2-9]/**", ["events/day=2026-01-02/_SUCCESS", "events/day=2026-01-02/part.parquet"]),
    ],
)
def test_an_address_names_the_objects_that_a_path_would_name(argument: str, keys: list[str], bucket: S3Endpoint) -> None:
    assert [file.address for file in remote_files(argument, bucket.options)] == [f"s3://files/{key}" for key in keys]


@pytest.mark.parametrize("key", ["in", "in/**", "in/a.csv"])
def test_sizes_come_with_the_list_of_a_bucket(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request for each object would take minutes for many thousands. The argument itself is asked for: it may be an object."""
    (tmp_path / "in" / "b").mkdir(parents=True)
    (tmp_path / "in" / "a.csv").write_text(CSV)
    (tmp_path / "in" / "b" / "b.csv").write_text("id\n1\n")
    store = CountingStore(tmp_path)
    monkeypatch.setattr("headgate_cli.load.remote.open_store", lambda *_: store)
    found = remote_files(f"s3://files/{key}", None)
    assert [file.size for file in found] == ([len(CSV)] if key == "in/a.csv" else [len(CSV), len("id\n1\n")])
    assert store.sized == [key]


@pytest.mark.parametrize("argument", ["s3://files/none.csv", "s3://files/none/*.csv", "s3://files/none/"])
def test_an_address_of_nothing_is_refused(argument: str, bucket: S3Endpoint) -> None:
    with pytest.raises(CommandError, match="no such file"):
        remote_files(argument, bucket.options)


def test_a_bucket_that_is_not_there_is_an_error_that_names_it(bucket: S3Endpoint) -> None:
    with pytest.raises(TablesError, match="nowhere"):
        remote_files("s3://nowhere/*.csv", bucket.options)


@pytest.mark.slow
def test_files_of_azure_are_found_and_copied() -> None:
    with azurite() as endpoint:
        bucket = endpoint.make_bucket("files")
        open_store(bucket, endpoint.options, SystemIds()).create("in/all.csv", [CSV.encode()], durable=True)
        with input_files(Output(json=False), [f"{bucket}/in/*"], endpoint.options) as found:
            assert [path.read_text() for path in found.paths] == [CSV]


def test_a_file_of_a_web_server_is_copied_whole_or_refused(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"{server}/a%20b.csv"
    with input_files(Output(json=True), [f"{address}?X-Amz-Signature=secret"]) as found:
        (path,) = found.paths
        assert (path.name, path.read_text(), found.address(path)) == ("a b.csv", CSV, address)
    assert not path.exists()
    assert json.loads(capsys.readouterr().out) == {"event": "copied", "file": address, "bytes": len(CSV)}
    for wrong, said in {
        f"{server}/cut.csv": "1,000 bytes before the file",
        f"{server}/none.csv?X-Amz-Signature=secret": "404",
        f"{server}/": "names no file",
        "http://127.0.0.1:1/a.csv": "refused",
        f"{server.replace('//', '//user:secret@')}/a.csv": "password",
    }.items():
        with pytest.raises(CommandError, match=said) as refused, input_files(Output(json=True), [wrong]):
            pass
        assert "secret" not in f"{refused.value.message} {refused.value.fix}"


def test_what_a_server_may_do_later_is_not_now_and_else_the_address_is_wrong(server: str) -> None:
    codes: dict[str, ExitCode] = {}
    for address in (
        f"{server}/none.csv",
        f"{server.replace('http:', 'https:')}/a%20b.csv",
        f"{server}/busy.csv",
        f"{server}/cut.csv",
        "http://127.0.0.1:1/a.csv",
    ):
        with pytest.raises(CommandError) as refused, input_files(Output(json=True), [address]):
            pass
        codes[address] = refused.value.code
    assert list(codes.values()) == [ExitCode.FIX_CALL] * 2 + [ExitCode.RETRY_LATER] * 3


def test_letters_of_any_language_and_spaces_may_stand_in_an_address_as_they_are(server: str) -> None:
    with input_files(Output(json=True), [f"{server}/Müll a.csv?X-Amz-Signature=secret ü"]) as found:
        (path,) = found.paths
        assert (path.name, path.read_text(), found.address(path)) == ("Müll a.csv", CSV, f"{server}/Müll a.csv")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("http://127.0.0.1:abc/a.csv?sig=secret", "http://… is no address"),
        ("http://user:secret@[::1/a.csv?sig=secret", "http://… is no address"),
        ("http:///a.csv?sig=secret", "http:///a.csv is no address"),
        ("http://a b/a.csv?sig=secret", "http://a b"),
        ("http://a..b/a.csv?sig=secret", "http://a..b/a.csv"),
        (f"http://127.0.0.1:1/{'x' * 300}.csv?sig=secret", "name too long"),
        ("http://[::1]:1/a.csv?sig=secret", "http://[::1]:1/a.csv: "),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_without_what_may_be_secret(wrong: str, said: str) -> None:
    with pytest.raises(CommandError) as refused, input_files(Output(json=True), [wrong]):
        pass
    assert said in refused.value.message
    assert "secret" not in f"{refused.value.message} {refused.value.fix} {refused.value.__cause__!r}"


def test_a_disk_without_room_is_told_before_anything_is_copied(bucket: S3Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": len(CSV) - 1}))
    with (
        pytest.raises(CommandError, match="has room for") as refused,
        input_files(Output(json=False), ["s3://files/all.csv"], bucket.options),
    ):
        pass
    assert "TMPDIR" in refused.value.fix


@pytest.mark.slow
def test_a_folder_of_a_bucket_is_loaded_with_its_columns_and_again_it_is_done(
    headgate: Any, bucket: S3Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.options["secret_access_key"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["access_key_id"])
    with DevCluster((tmp_path / "tables").as_uri(), tmp_path / "logs", "500ms", free_port()) as cluster:
        monkeypatch.setenv("HEADGATE_CONNECT", cluster.address)
        storage = ("--storage", f"endpoint={bucket.url}", "--storage", "region=us-east-1", "--storage", "allow_http=true")
        load = ("load", "s3://files/events", "--table", "events", *storage)
        code, said, error = headgate(*load, "--create", "--key", "id")
        assert (code, error) == (ExitCode.OK, {})
        loaded = [(record["file"], record["rows"]) for record in said if record["event"] == "loaded"]
        assert loaded == [(f"s3://files/events/day=2026-01-0{day}/part.parquet", 50) for day in (1, 2)]
        assert [record["rows"] for record in headgate(*load)[1] if record["event"] == "loaded"] == [0, 0]
        [described] = headgate("table", "describe", "events")[1]
        rows = without_meta(read_by_hudi_rs(Path(described["url"].removeprefix("file://")))).sort_by("id").to_pylist()
    assert [(row["id"], str(row["day"])) for row in rows] == [
        (day * 100 + number, f"2026-01-0{day}") for day in (1, 2) for number in range(50)
    ]
