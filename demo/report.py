"""The verdict: figures, and whether all promises held."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from demo.doubles import Blocks
from demo.freshness import percentile
from demo.oracle import Comparison
from demo.services import Services
from demo.stream import KILLS, Kill, Run
from headgate_tables.hudi import Verification

_NO_KILL_S = 5.0
_ENOUGH_ROWS = 100_000
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Observations:
    """The witness's observations. ``fullest``: moments, and log files of the fullest slice; one observation at least.
    ``hidden``: log files that hudi-rs left out at any of them.
    """

    fullest: Sequence[tuple[float, int]]
    hidden: Collection[str] = ()

    @property
    def most(self) -> int:
        """The most log files of a slice at any moment."""
        return max((files for _, files in self.fullest), default=0)

    @property
    def first(self) -> int:
        """The log files of the fullest slice when the first rows were there."""
        return next((files for _, files in self.fullest if files), 0)

    @property
    def last(self) -> int:
        """The log files of the fullest slice at the end."""
        return self.fullest[-1][1]

    def line(self) -> str:
        """Bars: the most log files in each of equal spans of time, and at the end; the lowest bar is none."""
        began, ended = self.fullest[0][0], self.fullest[-1][0]
        spans = [0] * min(_WIDTH, len(self.fullest) - 1)
        for moment, files in self.fullest[:-1]:
            at = min(int((moment - began) / max(0.001, ended - began) * len(spans)), len(spans) - 1)
            spans[at] = max(spans[at], files)
        return "".join(_BARS[-(-files * (len(_BARS) - 1) // max(1, self.most))] for files in [*spans, self.last])

    def changes(self, since: float) -> list[tuple[float, int]]:
        """(seconds since a moment, log files) at each change."""
        kept = [look for before, look in zip([(0.0, -1), *self.fullest], self.fullest, strict=False) if before[1] != look[1]]
        return [(round(moment - since, 1), files) for moment, files in kept]


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results. ``merged``: hudi-rs' read of base and log files; ``comparison``: its read after all was compacted."""

    events: int
    run: Run
    merged: Comparison
    comparison: Comparison
    blocks: Blocks
    services: Services
    observations: Observations
    verified: Verification
    url: str

    @property
    def passed(self) -> bool:
        """Whether all promises of the demo held."""
        killed = len(self.run.kills) == len(KILLS) and all(kill.back_after is not None for kill in self.run.kills)
        right = self.merged.ok and self.comparison.ok and self.blocks.doubled == 0 and self.blocks.unread == 0
        right = right and not self.observations.hidden
        return right and self.verified.ok and self.compacted and killed and not self.run.late

    @property
    def compacted(self) -> bool:
        """Whether nothing is left to compact, and no operation was left out."""
        return bool(self.services.compactions) and self.observations.last == 0 and self.services.dropped == 0

    def record(self) -> dict[str, Any]:
        """All figures, for programs."""
        run, calm = self.run, self._calm()
        return {
            "ok": self.passed,
            "events": self.events,
            "seconds": round(run.ended - run.began, 1),
            "rows_per_s": round(self.events / max(0.001, run.ended - run.began)),
            "full_speed_rows_per_s": self._full_speed(),
            "freshness_p50_s": calm[0],
            "freshness_p99_s": calm[1],
            "kills": [self._kill(kill) for kill in run.kills],
            "rows": self.comparison.found,
            "rows_expected": self.comparison.expected,
            "rows_before_last_compaction": self.merged.found,
            "lost": max(self.merged.lost, self.comparison.lost),
            "wrong": max(self.merged.wrong, self.comparison.wrong),
            "ghosts": max(self.merged.ghosts, self.comparison.ghosts),
            "doubled": max(self.merged.doubled, self.comparison.doubled) + self.blocks.doubled,
            "events_in_log_blocks": self.blocks.events,
            "log_files_read": self.blocks.files - self.blocks.unread,
            "log_files_unread": self.blocks.unread,
            "log_files_hidden": len(self.observations.hidden),
            "log_files_of_fullest_slice": self.observations.changes(run.began),
            "most_log_files": self.observations.most,
            "log_files_at_end": self.observations.last,
            "compactions": len(self.services.compactions),
            "slices_compacted": self.services.slices,
            "operations_dropped": self.services.dropped,
            "files_cleaned": self.services.cleaned,
            "instants_archived": self.services.archived,
            "commits": self.verified.commits,
            "files": self.verified.files,
            "findings": [f"{finding.path}: {finding.problem}" for finding in self.verified.findings],
            "examples": [*self.merged.examples, *self.comparison.examples],
            "table": self.url,
        }

    def lines(self) -> list[str]:
        """The report, for people."""
        found, record = self.comparison, self.record()
        fresh = f"p50 {_seconds(record['freshness_p50_s'])}, p99 {_seconds(record['freshness_p99_s'])}"
        lines = [
            f"  {self.events:,} events in {record['seconds']:.0f} s{self._at_full_speed()}",
            f"  from send to queryable: {fresh} (at the pace, before the first kill)",
        ]
        lines += [_kill_line(kill) for kill in record["kills"]]
        lines += self._services()
        agree = "[bold green]the same, row for row[/]" if found.ok and self.merged.ok else "[bold red]NOT THE SAME[/]"
        twice = f"hudi-rs reads {self.merged.found:,} rows, and {found.found:,} when all is compacted"
        unmerged = f"{self.blocks.events:,} events in {self.blocks.files:,} log files, read unmerged before they were cleaned"
        bad = f"{record['wrong']:,} wrong, {record['ghosts']:,} ghosts"
        lines += [
            f"  {twice}; DuckDB computes {found.expected:,} from the CSV: {agree}",
            f"  [bold]{record['lost']:,} lost, {record['doubled']:,} doubled[/], {bad} ({unmerged})",
        ]
        if self.blocks.unread:
            lines.append(f"  [bold red]{self.blocks.unread:,} log files were cleaned before they were read.[/]")
        if hidden := self.observations.hidden:
            lines.append(f"  [bold red]{len(hidden):,} log files were not shown by hudi-rs for a while,[/] as {min(hidden)}")
        lines += [f"    {example}" for example in record["examples"]]
        verified = self.verified
        differ = f"{len(verified.findings):,} that differ from the commit log"
        lines.append(f"  {verified.commits:,} commits, {verified.files:,} files: {differ}")
        if self.run.late:
            lines.append("  [bold red]Nothing became queryable for a minute; the rest was given up.[/]")
        for _, name in KILLS[len(self.run.kills) :]:
            lines.append(f"  [bold red]{name} was not killed: rows did not flow again in time after the kill before it.[/]")
        return lines

    def _services(self) -> list[str]:
        """The lines about table services."""
        seen, services = self.observations, self.services
        end = f"{seen.last} in the end" if self.compacted else f"[bold red]{seen.last} in the end: NOT COMPACTED[/]"
        dropped = f" ([bold red]{services.dropped:,} dropped[/])" if services.dropped else ""
        compactions = f"{len(services.compactions):,} compactions of {services.slices:,} slices"
        return [
            f"  log files of the fullest slice, over time: {seen.line()}  {seen.first} at first, at most {seen.most}, {end}",
            f"  {compactions}{dropped}, {services.cleaned:,} files cleaned, {services.archived:,} instants archived",
        ]

    def _kill(self, kill: Kill) -> dict[str, Any]:
        figures = {"name": kill.name, "process_back_s": kill.back_after, "rows_back_s": self._rows_back(kill.at)}
        if not kill.name.startswith("compactor"):
            return figures
        planned, done = self.services.next_compaction(kill.wall_ms) or (None, None)
        at_work = planned is not None and planned < kill.wall_ms
        return figures | {"at_work": at_work, "compacted_again_s": (done - kill.wall_ms) / 1000 if done else None}

    def _at_full_speed(self) -> str:
        """The speed of the last part; empty for few rows, whose speed is that of the checkpoint interval."""
        return f", the last of them at {self._full_speed():,} rows/s" if self._full_speed_rows() >= _ENOUGH_ROWS else ""

    def _full_speed_rows(self) -> int:
        return self.events - self.run.queryable_then if self.run.hurried else 0

    def _full_speed(self) -> int:
        run = self.run
        return round(self._full_speed_rows() / max(0.001, run.ended - run.hurried))

    def _rows_back(self, kill: float) -> float | None:
        """Seconds until each producer had a batch queryable that it sent after the kill; None if one had none."""
        times = [trace.back_after(kill) for trace in self.run.traces]
        return None if any(time is None for time in times) else max(time for time in times if time is not None)

    def _calm(self) -> tuple[float | None, float | None]:
        """p50 and p99 of the freshness of paced batches before the first kill."""
        run = self.run
        first = run.kills[0].at - _NO_KILL_S if run.kills else run.hurried or run.ended
        p50, p99 = (percentile(run.traces, percent, run.began, first) for percent in (50, 99))
        return p50, p99


def _kill_line(kill: dict[str, Any]) -> str:
    rows, process = _seconds(kill["rows_back_s"]), _seconds(kill["process_back_s"])
    at_work, after = "", ""
    if "at_work" in kill:
        at_work, whose = (" at work", "its") if kill["at_work"] else ("", "the next")
        after = f"{whose} compaction was done after {_seconds(kill['compacted_again_s'])}, "
    back = f"rows were queryable again after {rows} ({after}the process was back after {process})"
    return f"  kill -9 of {kill['name']}{at_work}: {back}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
