"""The verdict: figures, and whether all held."""

from dataclasses import dataclass
from typing import Any

from demo.freshness import percentile
from demo.oracle import Comparison
from demo.stream import KILLS, Run
from headgate_tables.hudi import Verification

_NO_KILL_S = 5.0
_ENOUGH_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """``doubled``: events that are in two committed log blocks. ``blocks``: events in all of them."""

    events: int
    run: Run
    comparison: Comparison
    blocks: int
    doubled: int
    verified: Verification
    url: str

    @property
    def held(self) -> bool:
        """Whether everything that the demo promises came true."""
        killed = len(self.run.kills) == len(KILLS) and all(kill.back_after is not None for kill in self.run.kills)
        right = self.comparison.ok and self.doubled == 0 and self.verified.ok
        return right and killed and not self.run.late

    def record(self) -> dict[str, Any]:
        """All figures, for programs."""
        run, calm = self.run, self._calm()
        return {
            "ok": self.held,
            "events": self.events,
            "seconds": round(run.ended - run.began, 1),
            "rows_per_s": round(self.events / max(0.001, run.ended - run.began)),
            "full_speed_rows_per_s": self._full_speed(),
            "freshness_p50_s": calm[0],
            "freshness_p99_s": calm[1],
            "kills": [
                {"name": kill.name, "process_back_s": kill.back_after, "rows_back_s": self._rows_back(kill.at)}
                for kill in run.kills
            ],
            "rows": self.comparison.found,
            "rows_expected": self.comparison.expected,
            "lost": self.comparison.lost,
            "wrong": self.comparison.wrong,
            "ghosts": self.comparison.ghosts,
            "doubled": self.comparison.doubled + self.doubled,
            "events_in_log_blocks": self.blocks,
            "commits": self.verified.commits,
            "files": self.verified.files,
            "findings": [f"{finding.path}: {finding.problem}" for finding in self.verified.findings],
            "examples": list(self.comparison.examples),
            "table": self.url,
        }

    def lines(self) -> list[str]:
        """For people."""
        found, record = self.comparison, self.record()
        fresh = f"p50 {_seconds(record['freshness_p50_s'])}, p99 {_seconds(record['freshness_p99_s'])}"
        lines = [
            f"  {self.events:,} events in {record['seconds']:.0f} s{self._at_full_speed()}",
            f"  from send to queryable: {fresh} (at the pace, before the first kill)",
        ]
        for kill in record["kills"]:
            rows, process = _seconds(kill["rows_back_s"]), _seconds(kill["process_back_s"])
            lines.append(
                f"  kill -9 of {kill['name']}: rows were queryable again after {rows} (the process was back after {process})"
            )
        agree = "[bold green]the same, row for row[/]" if found.ok else "[bold red]NOT THE SAME[/]"
        unmerged = f"{self.blocks:,} events in log blocks, unmerged; newer ones beat the others within a flush"
        bad = f"{found.wrong:,} wrong, {found.ghosts:,} ghosts"
        lines += [
            f"  hudi-rs reads {found.found:,} rows, DuckDB computes {found.expected:,} from the CSV: {agree}",
            f"  [bold]{found.lost:,} lost, {record['doubled']:,} doubled[/], {bad} ({unmerged})",
        ]
        lines += [f"    {example}" for example in found.examples]
        verified = self.verified
        differ = f"{len(verified.findings):,} that differ from the commit log"
        lines.append(f"  {verified.commits:,} commits, {verified.files:,} files: {differ}")
        if self.run.late:
            lines.append("  [bold red]Nothing became queryable for a minute; the rest was given up.[/]")
        for _, name in KILLS[len(self.run.kills) :]:
            lines.append(f"  [bold red]{name} was not killed: rows did not flow again in time after the kill before it.[/]")
        return lines

    def _at_full_speed(self) -> str:
        """Of a few rows it would measure the checkpoint's interval."""
        return f", the last of them at {self._full_speed():,} rows/s" if self._full_speed_rows() >= _ENOUGH_ROWS else ""

    def _full_speed_rows(self) -> int:
        return self.events - self.run.queryable_then if self.run.hurried else 0

    def _full_speed(self) -> int:
        run = self.run
        return round(self._full_speed_rows() / max(0.001, run.ended - run.hurried))

    def _rows_back(self, kill: float) -> float | None:
        """Until something that each producer sent after the kill was queryable."""
        times = [trace.back_after(kill) for trace in self.run.traces]
        return None if any(time is None for time in times) else max(time for time in times if time is not None)

    def _calm(self) -> tuple[float | None, float | None]:
        """p50 and p99 of what was sent at the pace, less the span around each kill."""
        run = self.run
        first = run.kills[0].at - _NO_KILL_S if run.kills else run.hurried or run.ended
        p50, p99 = (percentile(run.traces, percent, run.began, first) for percent in (50, 99))
        return p50, p99


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
