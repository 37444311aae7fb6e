"""The blocking face: the README's program, threads, running loops, Ctrl-C, programs that forget to close."""

import asyncio
import datetime
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import headgate
from headgate_proto.api.v1 import errors_pb2 as err
from support.scripted_service import Cluster, cluster_in_thread
from support.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_in_thread(writers=2) as cluster:
        yield cluster


def ids(cluster: Cluster) -> list[int]:
    return [row["id"] for row in cluster.tables["t"].rows]


def test_the_first_program_of_the_readme(cluster: Cluster) -> None:
    schema = pa.schema([("id", pa.string()), ("month", pa.string()), ("updated_at", pa.timestamp("us", tz="UTC"))])
    now = datetime.datetime(2013, 1, 31, tzinfo=datetime.UTC)
    rows = [{"id": f"UA-{number}", "month": "2013-01", "updated_at": now} for number in range(1500, 1600)]
    with headgate.connect(cluster.coordinator) as hg:
        flights = hg.create_table(
            "flights", schema, key="id", ordering="updated_at", partition_by="month", buckets=4, exist_ok=True
        )
        with flights.channel("loader-1") as ch:
            ch.upsert(rows)
            ch.delete([{"id": "UA-1545", "month": "2013-01", "updated_at": now}])
            ch.flush("queryable")
            assert ch.acks.queryable == ch.committed_offset == 101
        assert [info.name for info in hg.tables()] == ["flights"]
        assert hg.table("flights").info == flights.info
        assert hg.status().redis_reachable
    assert [(operation, len(rows)) for _, _, operation, rows in cluster.tables["flights"].log] == [(1, 100), (2, 1)]


def test_a_program_goes_on_where_it_was_after_a_restart(cluster: Cluster) -> None:
    source = [{"id": number} for number in range(30)]
    for _ in range(2):
        with headgate.connect(cluster.coordinator) as hg:
            table = hg.create_table("t", [("id", int)], key="id", exist_ok=True)
            with table.channel("c") as ch:
                for row in source[ch.committed_offset : ch.committed_offset + 15]:
                    ch.upsert([row])
    assert ids(cluster) == list(range(30))


def test_several_threads_share_a_channel_and_each_keeps_its_order(cluster: Cluster) -> None:
    cluster.knobs.break_after = [3, 5, 7]
    with headgate.connect(cluster.coordinator, in_flight_bytes=100_000) as hg:
        table = hg.create_table("t", [("id", int)], key="id")
        with table.channel("c") as ch:

            def send(worker: int) -> None:
                for number in range(300):
                    receipt = ch.upsert({"id": worker * 1000 + number})
                    if number % 50 == 0:
                        receipt.wait("durable")

            threads = [threading.Thread(target=send, args=(worker,)) for worker in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert ch.offset == 2400
    for worker in range(8):
        assert [number for number in ids(cluster) if number // 1000 == worker] == [worker * 1000 + n for n in range(300)]
    assert len(ids(cluster)) == 2400


async def test_it_works_inside_a_running_loop(cluster: Cluster) -> None:
    with headgate.connect(cluster.coordinator) as hg, hg.create_table("t", [("id", int)], key="id").channel("c") as ch:
        ch.upsert([{"id": 1}])
        await asyncio.sleep(0)
        await asyncio.to_thread(ch.flush)
    assert ids(cluster) == [1]


def test_a_refused_batch_is_corrected_from_its_rows(cluster: Cluster) -> None:
    cluster.knobs.refuse = lambda row: err.CODE_PARTITION_VALUE if row["id"] < 0 else None
    with headgate.connect(cluster.coordinator) as hg, hg.create_table("t", [("id", int)], key="id").channel("c") as ch:
        numbers = [1, -2, 3, -4, 5]
        while numbers or ch.acks.queryable < ch.offset:
            try:
                if numbers:
                    ch.upsert([{"id": numbers[0]}])
                    del numbers[0]
                else:
                    ch.flush()
            except headgate.BatchRefusedError as refused:
                if refused.rows["id"][0].as_py() == -2:
                    ch.upsert([{"id": 2}], offset=refused.offset)
                else:
                    ch.skip()
    assert ids(cluster) == [1, 2, 3, 5]


def test_a_reader_is_sent_as_it_is_read(cluster: Cluster) -> None:
    schema = pa.schema([("id", pa.int64())])
    batches = (pa.record_batch([pa.array(range(start, start + 1000))], schema=schema) for start in range(0, 10_000, 1000))
    with headgate.connect(cluster.coordinator) as hg, hg.create_table("t", schema, key="id").channel("c") as ch:
        assert ch.upsert(pa.RecordBatchReader.from_batches(schema, batches)).offset == 10_000
    assert ids(cluster) == list(range(10_000))


def test_after_the_connection_everything_says_that_it_is_closed(cluster: Cluster) -> None:
    with headgate.connect(cluster.coordinator) as hg:
        table = hg.create_table("t", [("id", int)], key="id")
        channel = table.channel("c")
    hg.close()
    for call in (hg.tables, channel.flush, lambda: table.channel("d"), lambda: channel.upsert([{"id": 1}]), channel.skip):
        with pytest.raises(headgate.ClosedError):
            call()


def test_waiting_calls_end_when_the_connection_is_closed(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    hg = headgate.connect(cluster.coordinator)
    channel = hg.create_table("t", [("id", int)], key="id").channel("c")
    channel.upsert([{"id": 1}])
    heard: list[BaseException] = []

    def wait() -> None:
        try:
            channel.flush()
        except headgate.HeadgateError as error:
            heard.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    channel.flush("received")
    hg.close()
    thread.join()
    assert isinstance(heard[0], headgate.ClosedError)


PROGRAM = """
    import sys, headgate

    hg = headgate.connect(sys.argv[1])
    table = hg.create_table("t", [("id", int)], key="id", exist_ok=True)
    {body}
"""


def start(cluster: Cluster, body: str) -> "subprocess.Popen[str]":
    body = textwrap.indent(textwrap.dedent(body), "    ").lstrip()
    program = textwrap.dedent(PROGRAM.format(body=body))
    command = [sys.executable, "-c", program, cluster.coordinator]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_ctrl_c_leaves_cleanly(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    body = """
        try:
            with hg, table.channel("c") as ch:
                ch.upsert([{"id": 1}])
                ch.flush()
        except KeyboardInterrupt:
            print("left", flush=True)
    """
    with start(cluster, body) as program:
        wait_until("the program waits for its flush", lambda: cluster.flushes)
        program.send_signal(signal.SIGINT)
        out, problems = program.communicate()
    assert (out, problems, program.returncode) == ("left\n", "", 0)


def test_calls_of_a_signals_handler_inside_of_another_call_raise_and_change_nothing(cluster: Cluster) -> None:
    body = """
        import signal
        from headgate.channel_state import ChannelState

        skip = ChannelState.skip

        def interrupted(*arguments):
            signal.raise_signal(signal.SIGUSR1)
            return skip(*arguments)

        def handle(*_):
            calls = (ch.flush, ch.close, hg.close, hg.tables, lambda: ch.upsert((2,)), lambda: ch.skip(9), lambda: ch.offset)
            for call in calls:
                try:
                    call()
                except headgate.InsideCallError as error:
                    print("raised", "Raise KeyboardInterrupt" in error.fix)

        signal.alarm(30)
        signal.signal(signal.SIGUSR1, handle)
        with hg, table.channel("c") as ch:
            ch.upsert((1,))
            ChannelState.skip = interrupted
            ch.skip(8)
            ch.upsert((3,))
    """
    with start(cluster, body) as program:
        assert program.communicate() == ("raised True\n" * 7, "")
    assert program.returncode == 0
    assert ids(cluster) == [1, 3]


@pytest.mark.slow
def test_a_program_that_forgets_to_close_ends_all_the_same(cluster: Cluster) -> None:
    body = """
        ch = table.channel("c")
        ch.upsert([{"id": 1}]).wait("queryable")
        print("done")
    """
    with start(cluster, body) as program:
        assert program.communicate() == ("done\n", "")
    assert program.returncode == 0
    assert ids(cluster) == [1]


def test_in_a_fork_calls_say_that_the_connection_is_the_parents(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the threads are there in a fork. It has another number, as here: in a real one gRPC may crash at any call."""
    parent = os.getpid()
    with headgate.connect(cluster.coordinator) as hg:
        table = hg.create_table("t", [("id", int)], key="id")
        channel = table.channel("c")
        channel.upsert([{"id": 1}])
        calls: list[Callable[[], object]] = [
            hg.tables,
            channel.flush,
            lambda: table.channel("d"),
            lambda: channel.upsert({"id": 2}),
            lambda: channel.upsert([{"id": 2}, {"id": 3}]),
            lambda: channel.skip(9),
            lambda: channel.offset,
        ]
        with monkeypatch.context() as fork:
            fork.setattr(os, "getpid", lambda: parent + 1)
            for call in calls:
                with pytest.raises(headgate.ClosedError, match="belongs to the parent process"):
                    call()
            with pytest.raises(headgate.ClosedError, match="forked from one that was connected"):
                headgate.connect(cluster.coordinator)
            channel.close()
        channel.upsert({"id": 4})
        channel.close()
    assert ids(cluster) == [1, 4]


FORKING = """
    import asyncio, contextlib, os, signal, sys
    from headgate.errors import ClosedError
    from headgate.loop_thread import LoopThread

    @contextlib.asynccontextmanager
    async def nothing():
        yield

    def say(call):
        try:
            print(call(), flush=True)
        except ClosedError as error:
            print(error.message, flush=True)

    def in_a_fork(work):
        if not (child := os.fork()):
            signal.alarm(30)
            work()
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

    def work():
        say(lambda: thread.run(asyncio.sleep(0, "ran")))
        say(lambda: LoopThread(nothing))
        thread.close()

    thread = LoopThread(nothing)
    in_a_fork(work)
    say(lambda: thread.run(asyncio.sleep(0, "goes on")))
    thread.close()
    in_a_fork(lambda: say(lambda: LoopThread(nothing).run(asyncio.sleep(0, "anew"))))
"""


def test_a_fork_ends_without_the_parents_thread_and_begins_one_when_the_parent_has_closed_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(FORKING)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines() == [
        "the connection belongs to the parent process",
        "this process was forked from one that was connected, and gRPC works only there",
        "7",
        "goes on",
        "anew",
        "7",
    ]
