"""What scale costs, in processes on this machine: CPU per row with more writers, checkpoints beside idle channels and tables.

All processes share the machine, so figures are CPU, and times of checkpoints as long as the machine is not full.
"""

import argparse
from collections.abc import Sequence

from bench.scale.by_idle import by_idle
from bench.scale.by_writers import by_writers

KINDS = ("writer", "coordinator", "redis")


def main() -> None:
    options = _options()
    if "writers" in options.sections:
        _writers(options)
    if "channels" in options.sections:
        _idle("channels", [(count, 0) for count in options.idle], options)
    if "tables" in options.sections:
        _idle("tables", [(0, count) for count in options.idle], options)


def _writers(options: argparse.Namespace) -> None:
    _say(f"\nCPU per row, {options.rate:,.0f} rows/s in all, a checkpoint each {options.interval:g} s")
    _row("writers", "rows/s", "µs a row", *KINDS)
    for _ in range(options.rounds):
        for writers in options.writers:
            found = by_writers(writers, options.rate, options.seconds, options.interval)
            rate = f"{found.rows / found.seconds:,.0f}"
            _row(writers, rate, f"{found.micros():.1f}", *(f"{found.micros(kind):.1f}" for kind in KINDS))


def _idle(what: str, cases: Sequence[tuple[int, int]], options: argparse.Namespace) -> None:
    _say(f"\nA checkpoint each {options.interval:g} s of one busy table, beside idle {what}")
    _row(what, "checkpoints", "ms each", *(f"{kind} % CPU" for kind in KINDS))
    for _ in range(options.rounds):
        for channels, tables in cases:
            found = by_idle(channels, tables, options.seconds, options.interval)
            shares = (f"{100 * found.used.cpu.get(kind, 0.0) / found.seconds:.1f}" for kind in KINDS)
            _row(max(channels, tables), f"{found.checkpoints:.0f}", f"{1000 * found.checkpoint_s:.0f}", *shares)


def _row(*cells: object) -> None:
    _say(" ".join(f"{cell!s:>18}" for cell in cells))


def _say(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./task bench scale", description=__doc__)
    sections = ("writers", "channels", "tables")
    parser.add_argument("--sections", nargs="+", choices=sections, default=sections)
    parser.add_argument("--writers", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--idle", nargs="+", type=int, default=[0, 10, 100, 1000], help="channels, then tables")
    parser.add_argument("--rate", type=float, default=20_000, help="rows a second, all producers together")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--interval", type=float, default=1, help="seconds between checkpoints")
    parser.add_argument("--rounds", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
