"""`./task fuzz`: strangers call every method of a real cluster with messages drawn from the contracts, while a victim sends rows.

By default the strangers hold the token of a producer: no process may end, no generation of the victim's table may be given up,
and every row of the victim is there once. With `--operate` they may also operate every table: compact, restore, adopt, configure.
With `--cluster` they hold the cluster's own token, with which anybody is a writer or a compactor, and writers that do no work
keep a table from committing: then processes and the victim's rows count, and commits come again once the strangers have gone.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import grpc

import headgate.aio
from fuzz.calls import EXCHANGE, SCHEMA, STRANGE, TABLE, TAKEN, UNREADABLE, Caller
from fuzz.targets import Target
from support.access import role, write_access
from support.cluster import Cluster
from support.methods import SERVED
from support.readers import read_by_hudi_rs

VICTIM = "victim"
STRANGER_TOKEN, VICTIM_TOKEN, CLUSTER_TOKEN = "stranger-token", "victim-token", "cluster-token"
COORDINATOR = ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms"]
LOOK_S = 0.05
"""Between two looks at where the strangers' table stands: frames of an older generation are refused unread."""
LONGEST_FLUSH_S = 120.0
"""Most that a row of the victim may wait; with `--cluster`, from the end of the attack."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./task fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1, help="of the messages; which come beside which is up to the machine")
    parser.add_argument("--strangers", type=int, default=4)
    parser.add_argument("--operate", action="store_true", help="strangers may operate tables, too")
    parser.add_argument("--cluster", action="store_true", help="strangers hold the cluster's token")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-fuzz-") as folder:
        sys.exit(_run(options, Path(folder)))


def _run(options: argparse.Namespace, folder: Path) -> int:
    tokens = {STRANGER_TOKEN: "stranger", VICTIM_TOKEN: "victim"}
    rights = ("write", "create", *(("operate", "admin") if options.operate else ()))
    roles = role("stranger", *rights), role("victim", "write", "create")
    flags = ["--access", str(write_access(folder / "access.toml", tokens, *roles)), "--audit-log", "none", "--refusals", "100000"]
    with Cluster(
        folder / "cluster",
        compactors=1,
        options={"coordinator": [*flags, *COORDINATOR], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": CLUSTER_TOKEN},
    ) as cluster:
        sent, late, generation, outcomes = asyncio.run(_attack(cluster, options))
        table = folder / "cluster" / "store" / VICTIM
        there = read_by_hudi_rs(table).column("id").to_pylist()
    calls = sum(outcomes.values())
    for (method, outcome), count in sorted(outcomes.items()):
        print(f"{count:8,}  {method}: {outcome}")
    strange = sorted({method for method, outcome in outcomes if outcome == "INTERNAL"})
    if strange:
        print(f"AN ERROR THAT NOBODY FORESAW CAME OUT OF {', '.join(strange)}:")
        for log in sorted((folder / "cluster" / "logs").iterdir()):
            print(
                "".join(line for line in log.read_text(errors="replace").splitlines(keepends=True) if "call failed" in line)[
                    :4000
                ]
            )
    print(f"the victim's last rows were confirmed {max(0.0, late):.1f} s after the attack")
    lost, more = len(sent - set(there)), len(there) - len(sent)
    rose = generation > 1 and not options.cluster
    print(f"{calls:,} calls; {len(sent):,} rows of the victim, {lost} of them lost, {more} too many; generation {generation}")
    deaf = options.cluster and not (outcomes[EXCHANGE, STRANGE] and any(outcomes[EXCHANGE, each] for each in (TAKEN, UNREADABLE)))
    if deaf:
        print("NO FRAME OF THE EXCHANGE WAS READ, or none of a stranger came, so this run says nothing about them")
    print("no process ended" if not rose else "A STRANGER MADE THE VICTIM'S TABLE GIVE A GENERATION UP")
    return 1 if strange or lost or more or rose or deaf or late > LONGEST_FLUSH_S else 0


async def _attack(cluster: Cluster, options: argparse.Namespace) -> tuple[set[str], float, int, Counter[tuple[str, str]]]:
    """Returns the victim's rows, seconds from the attack's end to their last flush, the generation, and how calls ended."""
    outcomes = Counter[tuple[str, str]]()
    token = CLUSTER_TOKEN if options.cluster else STRANGER_TOKEN
    timeout = LONGEST_FLUSH_S + (60 * options.minutes if options.cluster else 0)
    async with headgate.aio.connect(cluster.address, token=VICTIM_TOKEN, timeout=timeout) as hg:
        for name in (VICTIM, TABLE):
            await hg.create_table(name, SCHEMA, key="id", partition_by="part", ordering="ts", buckets=2)
        end = time.monotonic() + 60 * options.minutes
        channels = {part: grpc.aio.insecure_channel(cluster.address_of(part)) for part in (*SERVED, "writer-2")}
        target = Target()
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(_send(hg, end))
                writers = {cluster.address_of(part): part for part in ("writer-1", "writer-2")}
                tasks.create_task(_follow(hg, target, writers, end))
                for number in range(options.strangers):
                    caller = Caller(channels, token, Random(f"{options.seed} {number}"), target if options.cluster else None)
                    tasks.create_task(_bother(caller, end, outcomes))
        finally:
            for channel in channels.values():
                await channel.close()
        status = await hg.status(VICTIM)
    sent, flushed = sending.result()
    return sent, flushed - end, status.tables[0].generation, outcomes


async def _bother(caller: Caller, end: float, outcomes: Counter[tuple[str, str]]) -> None:
    while time.monotonic() < end:
        outcomes[await caller.call_once()] += 1


async def _follow(hg: headgate.aio.Headgate, target: Target, writers: Mapping[str, str], end: float) -> None:
    """Keeps the target right while generations rise."""
    while time.monotonic() < end:
        target.note(await hg.status(TABLE), writers)
        await asyncio.sleep(LOOK_S)


async def _send(hg: headgate.aio.Headgate, end: float) -> tuple[set[str], float]:
    """Rows until the end, each confirmed by a flush, and the moment of the last."""
    sent: set[str] = set()
    async with (await hg.table(VICTIM)).channel("loader") as channel:
        while time.monotonic() < end:
            ids = [f"row-{len(sent) + n}" for n in range(20)]
            await channel.upsert([{"id": each, "part": "p", "ts": 1, "note": None} for each in ids])
            sent.update(ids)
            await channel.flush()
        return sent, time.monotonic()


if __name__ == "__main__":
    main()
