"""`./task bench report`: see `--help`."""

import argparse
import sys
from pathlib import Path

from bench.report.page import page
from bench.report.results import RESULTS, results

PAGE = Path("docs/performance.md")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./task bench report",
        description=f"Writes {PAGE} from the newest results of every bench. A bench keeps those of a run in full (without\n"
        f"--quick and --match) in {RESULTS}, to be committed; one with --only replaces those sections alone.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--to", metavar="FILE", type=Path, default=PAGE, help=f"another file ({PAGE})")
    options = parser.parse_args()
    benches = list(results(RESULTS))
    if not benches:
        sys.exit(f"No results in {RESULTS}: run ./task bench NAME without --quick first.")
    options.to.write_text(page(benches))
    print(f"{options.to}: {sum(len(sections) for _, sections in benches)} sections of {len(benches)} benches.")


if __name__ == "__main__":
    main()
