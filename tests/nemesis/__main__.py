"""`./task nemesis`: a cluster takes rows for a while, and every kind of fault comes over it, mixed with kills."""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import headgate.aio
from headgate.maintenance import Maintenance
from nemesis.commits import CommitWatch
from nemesis.faults import FAULTS
from nemesis.gaps import Fault, Gap, gaps
from nemesis.places import PLACES, Place
from nemesis.scene import LONGEST_GAP_S, NotWell, Scene
from nemesis.schedule import KINDS, Kind, Parts, Strike, strikes
from support.cluster import Cluster
from support.exactly_once import assert_exactly_once
from support.producers import Producers, create_table
from support.workload import Workload

PARTS = Parts(
    coordinators=("coordinator-1", "coordinator-2"),
    writers=("writer-1", "writer-2", "writer-3"),
    compactors=("compactor-1", "compactor-2"),
    producers=("one", "two", "three"),
)
FLAGS = {"coordinator": ["--checkpoint-interval", "500ms", "--checkpoint-min-interval", "100ms", "--service-interval", "500ms"]}
BURST_ROWS = 60_000
SETTINGS = {"headgate.clean.min.age": "86400"}
"""The judge reads all that was ever committed, so nothing is removed."""


def main() -> None:
    options = _options()
    if os.geteuid() != 0:
        sys.exit("nemesis: faults of the disk need mounts of its own, so run it as root")
    folder = Path(tempfile.mkdtemp(prefix="headgate-nemesis-"))
    _say(f"logs and journals: {folder} (removed when all is well)")
    code = _run(options, folder)
    if code == 0:
        shutil.rmtree(folder)
    sys.exit(code)


def _run(options: argparse.Namespace, folder: Path) -> int:
    workload = Workload()
    with PLACES[options.store](folder) as place:
        with _cluster(folder, place) as cluster:
            url = create_table(cluster.address, "t", workload, buckets=2)
            asyncio.run(_configure(cluster.address, "t", SETTINGS | dict(options.set)))
            told = (cluster.address, "t", workload, folder)
            with (
                Producers(*told, rows=0, rate=options.rate / len(PARTS.producers), timeout=300) as producers,
                Producers(*told, rows=BURST_ROWS, batch=500, timeout=300) as bursts,
            ):
                watch = CommitWatch(str(place.files / "t"))
                scene = Scene(cluster, producers, bursts, PARTS, place, url, watch, cluster.address)
                try:
                    begin, faults = _torment(scene, options)
                    producers.finish(300)
                finally:
                    watch.stop()
                histories = [*producers.histories(), *bursts.histories()]
                end = time.monotonic()
        _say("reading every block that was ever committed ...")
        rs_options = place.hudi_rs_options
        report = assert_exactly_once(url, histories, workload, options=place.options, hudi_rs_options=rs_options)
    _say(str(report))
    kept = sum(len(history.kept) for history in histories)
    _say(f"{kept} rows were kept while their slice took none, and are there")
    if not kept and Kind.SLICE_SET_ASIDE.value in {fault.name for fault in faults}:
        scene.findings.append("a slice was set aside, and took all rows")
    return _verdict(scene, faults, gaps(watch.seen, faults, begin, end), options)


def _cluster(folder: Path, place: Place) -> Cluster:
    return Cluster(
        folder / "cluster",
        coordinators=len(PARTS.coordinators),
        writers=len(PARTS.writers),
        compactors=len(PARTS.compactors),
        store=place.store,
        env=place.env,
        options=FLAGS,
    )


async def _configure(address: str, table: str, settings: Mapping[str, str]) -> None:
    async with headgate.aio.connect(address, timeout=60, wait=60) as hg:
        await Maintenance(hg, table).configure(settings)


def _torment(scene: Scene, options: argparse.Namespace) -> tuple[float, list[Fault]]:
    """When it began, and each fault as it was."""
    for name in PARTS.producers:
        scene.producers.start(name)
    begin, faults = time.monotonic(), []
    for strike in strikes(options.seed, options.minutes, PARTS, options.kinds):
        scene.wait(begin + strike.at - time.monotonic())
        faults.append(_suffer(scene, strike, begin))
    scene.wait(begin + 60 * options.minutes - time.monotonic())
    return begin, faults


def _suffer(scene: Scene, strike: Strike, begin: float) -> Fault:
    began, found_before = time.monotonic(), len(scene.findings)
    _say(f"{began - begin:6.1f} s  {strike}")
    scene.begin(strike)
    try:
        FAULTS[strike.kind](scene, strike)
    except NotWell as error:
        scene.findings.append(f"{strike}: {error}")
    scene.end()
    for finding in scene.findings[found_before:]:  # a table that does not come back ends the run before its verdict
        _say(f"NOT WELL: {finding}")
    return Fault(began, time.monotonic(), strike.kind.value)


def _verdict(scene: Scene, faults: list[Fault], found: list[Gap], options: argparse.Namespace) -> int:
    """1 where something is not as it has to be; that nothing is lost, doubled or swapped was seen before."""
    times = Counter(fault.name for fault in faults)
    longest = {name: max((gap.seconds for gap in found if gap.fault == name), default=0.0) for name in times}
    too_long = [gap for gap in found if gap.seconds > LONGEST_GAP_S]
    for kind in options.kinds:
        _say(f"{times[kind.value]:4} x {kind.value}: at most {longest.get(kind.value, 0.0):.1f} s without a commit behind it")
    _say(
        f"{len(scene.kills):4} x kill -9: {', '.join(f'{name} {count}' for name, count in sorted(Counter(scene.kills).items()))}"
    )
    for finding in scene.findings:
        _say(f"NOT WELL: {finding}")
    for gap in too_long:
        _say(f"NOT WELL: {gap.seconds:.1f} s without a commit behind: {gap.fault}")
    if options.json:
        _say(json.dumps({"times": times, "longest_gap_s": longest, "kills": Counter(scene.kills), "findings": scene.findings}))
    return 1 if too_long or scene.findings else 0


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task nemesis", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1, help="the same seed and minutes give the same faults in the same order")
    parser.add_argument("--rate", type=float, default=600, help="rows a second, of three producers together")
    parser.add_argument("--store", choices=[*PLACES], default="local", help="a disk of its own, or a real S3 server on that disk")
    parser.add_argument("--kinds", default="", help=f"only these, with commas: {', '.join(kind.name.lower() for kind in Kind)}")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="KEY=VALUE", help="a setting of the table")
    parser.add_argument("--json", action="store_true", help="a last line for programs")
    options = parser.parse_args()
    options.kinds = _kinds(parser, options)
    return options


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("want KEY=VALUE")
    return key, value


def _kinds(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Kind]:
    possible = {kind.name.lower(): kind for kind in KINDS[options.store]}
    names = options.kinds.split(",") if options.kinds else [*possible]
    if others := [name for name in names if name not in possible]:
        parser.error(f"no kinds of --store {options.store}: {', '.join(others)}")
    return [possible[name] for name in names]


if __name__ == "__main__":
    main()
