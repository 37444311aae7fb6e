"""What each kind of fault does. A fault returns when it is over."""

import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping

import headgate
from nemesis.operated import future_times, overwrite, slice_set_aside
from nemesis.scene import Scene
from nemesis.schedule import AHEAD_S, SECONDS, Kind, Strike
from support.damage import flip
from support.disks import full
from support.processes import Died
from support.workload import SCHEMA

FORGET_EACH_S = 0.4
TWICE_AFTER_S = 1.5
HOGS = 4
BURST_WITHIN_S = 120.0


def redis_forgets(scene: Scene, strike: Strike) -> None:
    for _ in range(round(SECONDS[strike.kind] / FORGET_EACH_S)):
        scene.cluster.redis("FLUSHALL")
        scene.wait(FORGET_EACH_S)


def redis_twice(scene: Scene, strike: Strike) -> None:
    scene.cluster.restart("redis")
    scene.wait(TWICE_AFTER_S)
    scene.cluster.restart("redis")


def store_denies(scene: Scene, strike: Strike) -> None:
    with scene.place.denied():
        scene.wait(SECONDS[strike.kind])


def disk_full(scene: Scene, strike: Strike) -> None:
    with full(scene.place.disk):
        scene.wait(SECONDS[strike.kind])


def no_files(scene: Scene, strike: Strike) -> None:
    pid = scene.cluster.part(scene.named(strike.part)).pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def clock_ahead(scene: Scene, strike: Strike) -> None:
    name = scene.named(strike.part)
    scene.cluster.move_clock(name, AHEAD_S[strike.choice % len(AHEAD_S)])
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        scene.cluster.move_clock(name, 0)


def damaged_slice(scene: Scene, strike: Strike) -> None:
    chance = random.Random(strike.choice)
    file = scene.log_file(chance)
    right = file.read_bytes()
    overwrite(file, flip(right, chance.randrange(len(right))))
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        overwrite(file, right)


def overload(scene: Scene, strike: Strike) -> None:
    """It ends when its rows are durable, so that the next fault does not begin before."""
    burst = scene.bursts.start(f"burst-{strike.choice}", wait=False)
    scene.wait(SECONDS[strike.kind])
    burst.expect_end()
    try:
        if burst.wait_end(BURST_WITHIN_S):
            scene.findings.append(f"{burst.name} gave up\n{burst.tail(30)}")
    except Died:
        scene.findings.append(f"{burst.name}'s rows were not taken within {BURST_WITHIN_S:.0f} s\n{burst.tail(30)}")
        burst.kill()


def starved(scene: Scene, strike: Strike) -> None:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def paused(scene: Scene, strike: Strike) -> None:
    name = scene.named(strike.part)
    scene.cluster.pause(name)
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        scene.cluster.resume(name)


def coordinators_roll(scene: Scene, strike: Strike) -> None:
    _roll(scene, *scene.parts.coordinators)


def writers_roll(scene: Scene, strike: Strike) -> None:
    _roll(scene, *scene.parts.writers)


def folder_removed(scene: Scene, strike: Strike) -> None:
    """Of another table; that the cluster lists its tables and makes new ones is asked while it is gone."""
    name = f"side_{strike.choice}"
    with headgate.connect(scene.address, timeout=60, wait=60) as hg:
        hg.create_table(name, SCHEMA, key="id", buckets=1)
        shutil.rmtree(scene.place.files / name)
        scene.wait(SECONDS[strike.kind])
        for what, ask in (("list", hg.tables), ("create", lambda: hg.create_table(f"{name}_2", SCHEMA, key="id", buckets=1))):
            try:
                ask()
            except headgate.HeadgateError as error:
                scene.findings.append(f"a table's folder is gone, and nobody can {what} tables: {error}")


def folder_moved(scene: Scene, strike: Strike) -> None:
    away = scene.place.disk / "away"
    scene.folder.rename(away)
    try:
        scene.wait(SECONDS[strike.kind])
    finally:
        if scene.folder.exists():
            found = sorted(str(path.relative_to(scene.folder)) for path in scene.folder.rglob("*"))
            scene.folder.rename(scene.place.disk / f"half-{strike.choice}")
            scene.findings.append(f"the table's folder was moved away, and somebody made it anew, with {found}")
        away.rename(scene.folder)


FAULTS: Mapping[Kind, Callable[[Scene, Strike], None]] = {
    Kind.REDIS_FORGETS: redis_forgets,
    Kind.REDIS_TWICE: redis_twice,
    Kind.STORE_DENIES: store_denies,
    Kind.STORE_FORBIDS: store_denies,
    Kind.DISK_FULL: disk_full,
    Kind.NO_FILES: no_files,
    Kind.CLOCK_AHEAD: clock_ahead,
    Kind.DAMAGED_SLICE: damaged_slice,
    Kind.OVERLOAD: overload,
    Kind.STARVED: starved,
    Kind.PAUSED: paused,
    Kind.COORDINATORS_ROLL: coordinators_roll,
    Kind.WRITERS_ROLL: writers_roll,
    Kind.FOLDER_REMOVED: folder_removed,
    Kind.FOLDER_MOVED: folder_moved,
    Kind.SLICE_SET_ASIDE: slice_set_aside,
    Kind.FUTURE_TIMES: future_times,
}


def _roll(scene: Scene, *names: str) -> None:
    for name in names:
        scene.drain(name)
        scene.cluster.start(name)
        scene.wait(0.5)
