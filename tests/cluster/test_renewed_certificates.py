"""A producer of a real cluster streams while its certificate is renewed, the old one expires and the authority is rotated."""

import datetime
import json
from pathlib import Path

import pytest

import headgate
from support.access import role, write_access
from support.bad_batches import SCHEMA
from support.certificates import Authority, Certificate
from support.certified_clients import certified_clients
from support.processes import READY_S
from support.scene import keys_of
from support.waiting import wait_until

NAME = "loader.example.org"
SHORT = datetime.timedelta(seconds=12)


@pytest.mark.slow
def test_a_producer_streams_on_while_its_certificate_is_renewed_and_the_older_one_ends(tmp_path: Path) -> None:
    access = write_access(tmp_path / "access.toml", {}, role(f"cert:{NAME}", "write", "create"))
    own, log, sent = Certificate(tmp_path / "me.pem", tmp_path / "me.key"), tmp_path / "audit.jsonl", 0

    def take(issued: Certificate) -> None:
        own.cert.write_bytes(issued.cert.read_bytes())
        send()  # with half of a pair
        own.key.write_bytes(issued.key.read_bytes())

    def send() -> None:
        nonlocal sent
        channel.upsert([{"id": f"{sent:06}", "part": "p", "ts": sent, "note": ""}])
        channel.flush()
        sent += 1

    def opened_with(issued: Certificate) -> bool:
        send()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return any(line.get("channel") == "c" and line["credential"] == f"x509:{issued.serial:x}" for line in lines)

    with certified_clients(tmp_path / "all", access, "--audit-log", str(log)) as certified:
        first, second = certified.clients.issue("first", [NAME], valid=SHORT), certified.clients.issue("second", [NAME])
        end = datetime.datetime.now(datetime.UTC) + SHORT
        for source, target in ((first.cert, own.cert), (first.key, own.key)):
            target.write_bytes(source.read_bytes())
        with certified.connect(own) as hg:
            table = hg.create_table("t", SCHEMA, key="id", partition_by="part", ordering="ts", buckets=2)
            with table.channel("c") as channel:
                take(second)
                assert not opened_with(second), "the connection stays until its certificate ends"
                wait_until("the channel is opened with the newer certificate", lambda: opened_with(second), READY_S)
                assert datetime.datetime.now(datetime.UTC) > end - datetime.timedelta(seconds=1)
                newer = Authority(tmp_path / "newer")
                certified.clients.cert.write_bytes(newer.cert.read_bytes())
                take(third := newer.issue("third", [NAME]))
                certified.cluster.kill("writer-1")
                certified.cluster.start("writer-1")
                wait_until("the channel is opened with that of the newer authority", lambda: opened_with(third), READY_S)
        assert keys_of(table.info.url) == [f"{number:06}" for number in range(sent)]
        with certified.connect(second, timeout=2) as hg, pytest.raises(headgate.UnavailableError):
            hg.tables()
