"""`./task mutants`: plants one mistake at a time into a copy of the committed code and runs the tests that guard it.

A mutant is killed when a test fails or hangs. At least 95 in 100 have to be, and who survives is named. It takes about an hour,
so it is run by hand after changes of what it covers, and before each release. A test of every run
(`tests/mutants/test_catalog.py`) sees that no mutant is stale.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.catalog import Mutant, catalog

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".cache" / "mutants"
LEAST_KILLED = 0.95
LEAST_LIMIT_S, LIMIT_FACTOR = 20, 3
"""Tests hang when they take as many times longer than without a mistake, and so many seconds more."""
SOUND_LIMIT_S = 3600
MEMBERS = ("proto", "coordinator", "writer", "compactor", "lib/cli", "lib/client", "lib/runtime", "lib/tables", "tests", ".")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./task mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="parts or names, as 'publish' or '*slot*'")
    parser.add_argument(
        "--share", type=_share, default=(1, 1), metavar="N/OF", help="every OF-th mutant from the N-th: 1/6 to 6/6 are all"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="name them and end")
    options = parser.parse_args()
    number, of = options.share
    chosen = catalog(options.only)[number - 1 :: of]
    if options.list:
        print("\n".join(f"{mutant}  ({mutant.file})" for mutant in chosen))
        return
    shutil.rmtree(WORK, ignore_errors=True)
    trees = [_copy(WORK / str(number)) for number in range(options.jobs)]
    seconds = _check_sound(chosen, trees[0], options.jobs)
    free = list(trees)

    def judge(mutant: Mutant) -> bool:
        tree = free.pop()
        try:
            return _is_killed(mutant, tree, _limit_of(mutant, seconds))
        finally:
            free.append(tree)

    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(judge, chosen))
    sys.exit(_report(chosen, verdicts))


def _share(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not 1 <= int(number) <= int(of):
        raise ValueError(text)
    return int(number), int(of)


def _copy(folder: Path) -> Path:
    """What is committed, without its history."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def _check_sound(mutants: list[Mutant], tree: Path, jobs: int) -> Mapping[str, float]:
    """Seconds that the tests of each module take. Tests that fail without a mistake would kill every mutant: that
    ends the process, with what pytest said.
    """
    began = time.monotonic()
    report, tests = WORK / "sound.xml", sorted({test for mutant in mutants for test in mutant.tests})
    done = _pytest(["-n", str(jobs), "--dist", "loadfile", f"--junit-xml={report}", *tests], tree, SOUND_LIMIT_S)
    if done.returncode:
        sys.exit(f"{done.stdout[-3000:]}{done.stderr[-2000:]}\nThese tests fail without any mistake; no mutant was tried.")
    print(f"sound    {time.monotonic() - began:5.0f} s  all their tests pass without a mistake", flush=True)
    seconds = defaultdict[str, float](float)
    for case in ElementTree.parse(report).iter("testcase"):
        seconds[case.attrib["classname"]] += float(case.attrib["time"])
    return seconds


def _limit_of(mutant: Mutant, seconds: Mapping[str, float]) -> float:
    wanted = [test.partition("::")[0].removesuffix(".py").replace("/", ".") + "." for test in mutant.tests]
    of_tests = sum(took for module, took in seconds.items() if any(f"{module}.".startswith(name) for name in wanted))
    return LEAST_LIMIT_S + LIMIT_FACTOR * of_tests


def _is_killed(mutant: Mutant, tree: Path, limit_s: float) -> bool:
    file = tree / mutant.file
    right = file.read_text(encoding="utf-8")
    began = time.monotonic()
    file.write_text(mutant.applied_to(right), encoding="utf-8")
    try:
        code = _test(mutant, tree, limit_s)
    finally:
        file.write_text(right, encoding="utf-8")
    killed = code != 0
    took = time.monotonic() - began
    print(f"{'killed  ' if killed else 'SURVIVES' if not mutant.explained else 'explained'} {took:5.0f} s  {mutant}", flush=True)
    return killed


def _test(mutant: Mutant, tree: Path, limit_s: float) -> int:
    """pytest's exit code; 1 where it hangs. Raises RuntimeError where the tests could not run at all."""
    try:
        done = _pytest(["-p", "no:xdist", *mutant.tests], tree, limit_s)
    except subprocess.TimeoutExpired:
        return 1
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{mutant}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode


def _pytest(arguments: Sequence[str], tree: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / member) for member in MEMBERS), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", *arguments]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=limit_s, check=False)


def _report(mutants: list[Mutant], verdicts: list[bool]) -> int:
    alive = [mutant for mutant, killed in zip(mutants, verdicts, strict=True) if not killed]
    killed = len(mutants) - len(alive)
    print(f"\n{killed} of {len(mutants)} killed ({killed / len(mutants):.0%})")
    for mutant in alive:
        print(f"  {mutant} ({mutant.file}): {mutant.explained or 'no test fails'}")
    return 0 if killed >= LEAST_KILLED * len(mutants) and all(mutant.explained for mutant in alive) else 1


if __name__ == "__main__":
    main()
