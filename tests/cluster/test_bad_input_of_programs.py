"""What programs do wrongly with the SDK, against real processes: each error has a class, names the thing and says what to do; the
channel goes on afterwards, and another program that writes at the same time notices nothing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

import headgate
from headgate import BatchRefusedError, FixCall
from support.bad_batches import MIB, SCHEMA
from support.cluster import Cluster
from support.processes import READY_S
from support.scene import keys_of

OPTIONS = {"coordinator": ["--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]}
Row: TypeAlias = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("sdk") / "cluster", options=OPTIONS) as running:
        yield running


@pytest.fixture
def program(cluster: Cluster) -> Iterator[headgate.Headgate]:
    with headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        yield hg


@pytest.fixture
def table(program: headgate.Headgate, request: pytest.FixtureRequest) -> headgate.Table:
    """A new one."""
    name = re.sub(r"\W+", "-", request.node.name)[-60:].strip("_-")
    return program.create_table(name, SCHEMA, key="id", partition_by="part", ordering="ts", buckets=2)


class Neighbour:
    """Another program that writes to the same table."""

    def __init__(self, cluster: Cluster, table: headgate.Table) -> None:
        self._program = headgate.connect(cluster.address, timeout=READY_S, wait=READY_S)
        self._channel = self._program.table(table.info.name).channel("neighbour")
        self._url = table.info.url
        self._written: list[str] = []

    def __enter__(self) -> "Neighbour":
        self.writes()
        return self

    def __exit__(self, *error: object) -> None:
        self._program.close()

    def writes(self) -> None:
        """Does not wait."""
        for _ in range(20):
            self._written.append(f"neighbour-{len(self._written)}")
            self._channel.upsert([row(self._written[-1])])

    def judge(self, cluster: Cluster, *keys: str) -> None:
        """Its rows and these are in the table; it heard of nothing; nobody was rewound, all processes live."""
        self.writes()
        self._channel.flush()
        assert keys_of(self._url) == sorted([*keys, *self._written])
        [status] = self._program.status(self._url.rpartition("/")[2]).tables
        assert (status.epoch, status.generation) == (1, 1), status.alarms
        assert all(part.is_alive for part in cluster.parts.values())


def row(key: str | None, **other: Any) -> Row:
    return {"id": key, "part": "p", "ts": 1, "note": "", **other}


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that a writer refuses: the SDK cannot know, or leaves it to the table."""

    rows: list[Row]
    reason: str
    says: str
    fix: str


REFUSED = {
    "dots": Refused([row("bad", part="..")], "PARTITION_VALUE", r"'\.\.' .*'part'", "Change the value"),
    "NUL": Refused([row("bad", part="p\0")], "PARTITION_VALUE", "'part' holds NUL", "Change the value"),
    "no name": Refused([row("bad", part="")], "PARTITION_VALUE", "'part'", "Change the value"),
    "a long name": Refused([row("bad", part="p" * 256)], "PARTITION_VALUE", "'part' .*256 bytes", "Change the value"),
    "a null partition": Refused([row("bad", part=None)], "PARTITION_VALUE", "'part' is null", "a value"),
    "an empty key": Refused([row("")], "NULL_KEY", "'id' is null or empty", "Give these rows a key"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_batch_stops_its_channel_until_it_is_corrected_or_skipped(
    case: str, cluster: Cluster, table: headgate.Table
) -> None:
    bad = REFUSED[case]
    with Neighbour(cluster, table) as neighbour:
        for name in ("corrected", "skipped"):
            with table.channel(name) as channel:
                channel.upsert([row(f"{name} before")])
                channel.upsert(bad.rows)
                neighbour.writes()
                for call in (channel.flush, lambda: channel.upsert([row("slipped")]), lambda: channel.delete([row("slipped")])):
                    with pytest.raises(BatchRefusedError, match=bad.says) as caught:
                        call()
                    refused = caught.value
                    assert (refused.reason, refused.rows.to_pylist()[0]["id"]) == (bad.reason, bad.rows[0]["id"])
                    assert re.search(bad.fix, refused.fix)
                    assert re.search(rf"send the corrected rows with offset={refused.offset}, or skip\(\)", refused.fix)
                neighbour.writes()
                if name == "corrected":
                    channel.upsert([row("corrected")], offset=refused.offset)
                else:
                    channel.skip()
                channel.upsert([row(f"{name} behind")])
                channel.flush()
        neighbour.judge(cluster, "corrected before", "corrected", "corrected behind", "skipped before", "skipped behind")


def _without(row: Row, column: str) -> Row:
    return {name: value for name, value in row.items() if name != column}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A call that raises before anything is sent."""

    call: Callable[[headgate.Channel], object]
    error: type[FixCall]
    says: str
    fix: str


MAY_LACK = "rows may lack only columns that can be null: note"
MISFITS = {
    "a null key": Misfit(lambda c: c.upsert([row("a"), row(None)]), headgate.RowError, "row 1 .*'id'", "never null"),
    "a null ordering": Misfit(lambda c: c.upsert([row("a", ts=None)]), headgate.RowError, "row 0 .*'ts'", "never null"),
    "a delete without ordering": Misfit(
        lambda c: c.delete([{"id": "a", "part": "p"}]), headgate.RowError, "row 0 has no 'ts'", "deletes need id, part, ts"
    ),
    "a missing column": Misfit(lambda c: c.upsert([_without(row("a"), "part")]), headgate.RowError, "no 'part'", MAY_LACK),
    "an unknown column": Misfit(
        lambda c: c.upsert([row("a", x=1)]), headgate.RowError, "'x', which is not a column", "id, part, ts"
    ),
    "another type": Misfit(lambda c: c.upsert([row("a", ts="soon")]), headgate.RowError, "row 0, column 'ts': 'soon'", "int64"),
    "an unknown operation": Misfit(
        lambda c: c.write([{"op": "upsret", **row("a")}]), headgate.RowError, "operation 'upsret'", "'upsert' or 'delete'"
    ),
    "no operation": Misfit(lambda c: c.write([row("a")]), headgate.RowError, "no 'op'", MAY_LACK),
    "a value too large": Misfit(
        lambda c: c.upsert([row("a"), row("b", note="x" * (MIB - 3))]),
        headgate.TooLargeError,
        "row 1.*'note'.*1,048,576",
        "in files",
    ),
    "too many partitions with one offset": Misfit(
        lambda c: c.upsert([row("a", part=f"p{n}") for n in range(1025)], offset=9),
        headgate.TooLargeError,
        "more than 1,024 partitions",
        "fewer rows",
    ),
    "too much with one offset": Misfit(
        lambda c: c.upsert([row(str(n), note="x" * (MIB - 4)) for n in range(9)], offset=9),
        headgate.TooLargeError,
        "9 rows",
        "fewer rows",
    ),
    "an offset that goes back": Misfit(
        lambda c: c.upsert([row("a")], offset=1), headgate.InvalidArgumentError, "1 is not above 1", "Give growing offsets"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MISFITS)
def test_a_call_that_cannot_be_right_takes_nothing_and_the_next_one_goes_on(
    case: str, cluster: Cluster, table: headgate.Table
) -> None:
    bad = MISFITS[case]
    with Neighbour(cluster, table) as neighbour, table.channel("c") as channel:
        channel.upsert([row("before")])
        with pytest.raises(bad.error, match=bad.says) as caught:
            bad.call(channel)
        assert re.search(bad.fix, caught.value.fix), caught.value.fix
        assert channel.offset == 1
        channel.upsert([row("behind")])
        channel.flush()
        neighbour.judge(cluster, "before", "behind")


@pytest.mark.slow
def test_rows_of_more_partitions_than_a_writer_takes_at_once_are_taken_in_their_order(
    cluster: Cluster, table: headgate.Table
) -> None:
    with Neighbour(cluster, table) as neighbour, table.channel("c") as channel:
        channel.upsert([row(f"{n}", part=f"p{n % 1_500}") for n in range(2_000)])
        assert channel.offset == 2_000
        channel.upsert([row(f"{n}", part=f"p{n % 1_500}", note="x" * (MIB - 4)) for n in range(1_400, 1_402)])
        channel.flush()
        neighbour.judge(cluster, *(f"{n}" for n in range(2_000)))


def test_a_table_that_is_not_there_is_told_as_such(program: headgate.Headgate) -> None:
    with pytest.raises(headgate.TableNotFoundError) as caught:
        program.table("nowhere")
    assert "Create it, or correct the name" in caught.value.fix


def send(channel: headgate.Channel) -> None:
    """This cannot return before the producer hears that its channel was taken over, as a flush of nothing may."""
    channel.upsert([row("slipped")])
    channel.flush()


def test_a_producer_whose_channel_was_taken_over_is_told_and_its_accepted_rows_stay(
    cluster: Cluster, table: headgate.Table
) -> None:
    with Neighbour(cluster, table) as neighbour, headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as other:
        old = table.channel("c")
        old.upsert([row("old")]).wait("received")
        with other.table(table.info.name).channel("c") as new:
            assert new.committed_offset == 1
            for call in (lambda: send(old), old.flush, lambda: old.upsert([row("slipped")])):
                with pytest.raises(headgate.ChannelTakenOverError, match="newer producer") as caught:
                    call()
                assert "Stop this producer" in caught.value.fix
            new.upsert([row("new")])
        neighbour.judge(cluster, "old", "new")
