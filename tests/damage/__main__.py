"""`./task damage`: damages files of tables, one trial after the other, and does all that programs do with a table.

Every step has to give the right rows or an error of the library, within 5 s and 512 MiB, without a word on stderr. What a scan
cannot see (docs/operations.md, "When a file is damaged") has to be found by `verify`.
"""

import argparse
import os
import pickle
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import fastavro  # noqa: F401  # imported once, here, and not in every trial
import pyarrow.dataset  # noqa: F401

from damage import templates, trial, verdicts, wounds
from damage.templates import Template


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./task damage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=None, metavar="N", help="one trial of these, with all that came of it")
    parser.add_argument("--kind", choices=[kind for kind, _ in wounds.KINDS], help="damage only such files, where there are any")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-damage-") as folder:
        sys.exit(_run(options, Path(folder)))


def _run(options: argparse.Namespace, folder: Path) -> int:
    made = _made_elsewhere(folder)
    outside = folder / wounds.OUTSIDE
    outside.mkdir()
    (outside / "file").write_bytes(b"nobody's")
    began, bad, seen = time.monotonic(), 0, Counter[tuple[str, str]]()
    for number in [options.only] if options.only is not None else range(options.trials):
        chance = Random(f"{options.seed}-{number}")
        template = made[0] if chance.random() < 0.6 else chance.choice(made[1:])
        store = templates.copy(template, folder / "trial")
        wound = wounds.hurt(store, chance, options.kind)
        outcome = trial.run(template, store)
        wrong = verdicts.wrong_with(template, wound, outcome)
        if {file.name: file.read_bytes() for file in outside.iterdir()} != {"file": b"nobody's"}:
            wrong.append("files outside of the store are others now")
        scanned = outcome.step("scan")
        seen[wound.kind, (scanned.error if scanned else "") or "right rows"] += 1
        if wrong or options.only is not None:
            print(f"\n--- trial {number}: {template.name}: {wound}")
            print("\n".join(wrong))
        if options.only is not None:
            for step in outcome.steps:
                print(f"{step.name}: {step.error} {step.message} {step.raw} {step.seconds:.2f} s")
            print(*outcome.found, outcome.peak, sep="\n")
        bad += bool(wrong)
        shutil.rmtree(store)
    for (kind, result), count in sorted(seen.items()):
        print(f"{count:6}  {kind}: {result}")
    print(f"{sum(seen.values())} trials in {time.monotonic() - began:.0f} s, {bad} of them wrong")
    return 1 if bad else 0


def _made_elsewhere(folder: Path) -> Sequence[Template]:
    """Made in a process of its own: this one forks, so it must not have threads."""
    kept = folder / "templates"
    child = os.fork()
    if child == 0:
        try:
            kept.write_bytes(pickle.dumps(templates.made(folder)))
        except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the tables could not be made")
    made: Sequence[Template] = pickle.loads(kept.read_bytes())
    return made


if __name__ == "__main__":
    main()
