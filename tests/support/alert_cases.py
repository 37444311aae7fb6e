"""For each alert series for which it fires, and series for which it does not; and promtool's test of them.

Series are promtool's: ``0+1x5`` is 0, 1, … 5, one a minute; ``1x5`` is six times 1; ``stale`` ends
the series.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LASTS = 120
"""Minutes for which most series go on."""
_STAYS = f"1x{LASTS}"
_T = 'table="t"'

Series = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """``at``: minutes after which the alert fires for ``fires`` and not for ``silent``. ``others``: further silent cases, such as
    one in which the trouble ends too early.
    """

    alert: str
    at: int
    fires: Series
    silent: Series
    others: Sequence[Series] = ()


def _alarm(alert: str, kind: str, at: int = 0, other: str = "no_writer") -> Case:
    """An alarm of another kind is silent; where the alert waits, one that ends a minute too early is, too."""
    short = [{f'headgate_alarm{{{_T},kind="{kind}"}}': f"{'1 ' * at}stale"}] if at else []
    return Case(
        alert,
        at,
        fires={f'headgate_alarm{{{_T},kind="{kind}"}}': _STAYS},
        silent={f'headgate_alarm{{{_T},kind="{other}"}}': _STAYS},
        others=short,
    )


def _flag(alert: str, metric: str, at: int = 0) -> Case:
    return Case(alert, at, fires={f'{metric}{{instance="w"}}': _STAYS}, silent={f'{metric}{{instance="w"}}': f"0x{LASTS}"})


def _sum(metric: str, *, each: int, times: int) -> Series:
    """Two coordinators that count together; promtool's series begins at 0."""
    return {f'{metric}{{{_T},instance="{name}"}}': f"0+{each}x{times} {each * times}x{LASTS}" for name in ("a", "b")}


CASES = (
    Case(
        "HeadgateNoCommits",
        6,
        fires={f"headgate_last_commit_timestamp_seconds{{{_T}}}": f"0x{LASTS}", f"headgate_uncommitted_bytes{{{_T}}}": _STAYS},
        silent={
            f"headgate_last_commit_timestamp_seconds{{{_T}}}": f"0+60x{LASTS}",
            f"headgate_uncommitted_bytes{{{_T}}}": _STAYS,
        },
        others=[
            {
                f"headgate_last_commit_timestamp_seconds{{{_T}}}": f"0x{LASTS}",
                f"headgate_uncommitted_bytes{{{_T}}}": f"0x{LASTS}",
            },
            {  # the first rows after a quiet hour wait for the next checkpoint only
                f"headgate_last_commit_timestamp_seconds{{{_T}}}": f"0x{LASTS}",
                f"headgate_uncommitted_bytes{{{_T}}}": f"0x4 1x{LASTS}",
            },
        ],
    ),
    Case(
        "HeadgateCheckpointsAborted",
        8,
        fires=_sum("headgate_aborts_total", each=1, times=4),
        silent=_sum("headgate_aborts_total", each=1, times=1),
        others=[{f'headgate_alarm{{{_T},kind="clock"}}': _STAYS}],
    ),
    _alarm("HeadgateCheckpointsAborted", "checkpoints_aborted", at=1),
    Case(
        "HeadgateReportsRefuted",
        5,
        fires=_sum("headgate_refuted_checkpoints_total", each=1, times=1),
        silent=_sum("headgate_refuted_checkpoints_total", each=0, times=1),
    ),
    _alarm("HeadgateWriterExcluded", "writer_excluded"),
    _alarm("HeadgateNoWriter", "no_writer", at=1, other="clock"),
    _alarm("HeadgateTableQuarantined", "quarantined"),
    _alarm("HeadgateTableNotServed", "not_served", at=1),
    _alarm("HeadgateFolderGone", "folder_gone", at=1),
    Case(
        "HeadgateTakeovers",
        50,
        fires=_sum("headgate_fences_total", each=1, times=5),
        silent=_sum("headgate_fences_total", each=1, times=2),
    ),
    _alarm("HeadgateSlicesUncounted", "slices_uncounted", at=5),
    _alarm("HeadgateFutureTimes", "future_times", at=1),
    _alarm("HeadgateIntakeStopped", "intake_stopped"),
    _alarm("HeadgateIntakeSlowed", "intake_slowed", at=5),
    _alarm("HeadgateIntakeSlowed", "checkpoints_stretched", at=5),
    _alarm("HeadgateNoCompactor", "no_compactor", at=2),
    _alarm("HeadgateCompactionRetried", "compaction_retried", at=2),
    _alarm("HeadgateCompactionRefused", "compaction_refused", at=2),
    _alarm("HeadgateSliceStuck", "slice_stuck"),
    Case(
        "HeadgateSliceStuck",
        5,
        fires=_sum("headgate_operations_dropped_total", each=1, times=1),
        silent=_sum("headgate_operations_dropped_total", each=0, times=1),
    ),
    _alarm("HeadgateSliceSetAside", "slice_set_aside", at=60),
    _alarm("HeadgateNotMaintained", "not_maintained"),
    Case("HeadgateNoCoordinator", 1, fires={}, silent={'headgate_tables_owned{instance="c"}': f"0x{LASTS}"}),
    *(_alarm("HeadgateStoreRefuses", f"store_{how}", at=1) for how in ("denied", "full", "silent", "failed")),
    Case(
        "HeadgateStoreRefuses",
        1,
        fires={'headgate_alarm{table="",kind="store_denied"}': _STAYS},
        silent={'headgate_alarm{table="",kind="clock"}': _STAYS},
    ),
    Case(
        "HeadgateRedisUnreachable",
        1,
        fires={'headgate_redis_reachable{instance="a"}': _STAYS, 'headgate_redis_reachable{instance="b"}': f"0x{LASTS}"},
        silent={'headgate_redis_reachable{instance="a"}': _STAYS, 'headgate_redis_reachable{instance="b"}': f"0 1x{LASTS}"},
    ),
    _alarm("HeadgateClockWrong", "clock"),
    Case(
        "HeadgateBuffersFull",
        10,
        fires={'headgate_writer_buffer_bytes{i="w"}': f"95x{LASTS}", 'headgate_writer_buffer_limit_bytes{i="w"}': f"100x{LASTS}"},
        silent={
            'headgate_writer_buffer_bytes{i="w"}': f"80x{LASTS}",
            'headgate_writer_buffer_limit_bytes{i="w"}': f"100x{LASTS}",
        },
        others=[  # it was full for nine minutes
            {
                'headgate_writer_buffer_bytes{i="w"}': f"95x9 10x{LASTS}",
                'headgate_writer_buffer_limit_bytes{i="w"}': f"100x{LASTS}",
            }
        ],
    ),
    Case(
        "HeadgateBatchesRefused",
        20,
        fires={'headgate_writer_refused_batches_total{code="CODE_NULL_KEY"}': f"0+1x{LASTS}"},
        silent={'headgate_writer_refused_batches_total{code="CODE_NULL_KEY"}': f"0 0+1x3 4x{LASTS}"},
    ),
    _flag("HeadgateAccessFileWrong", "headgate_access_file_wrong"),
    _flag("HeadgateIssuerKeysStale", "headgate_issuer_keys_stale", at=1),
)


def promtool_tests(rules: Path, cases: Sequence[Case] = CASES) -> str:
    """The input of ``promtool test rules``, in JSON, which is YAML. It asks for the series ALERTS, and not with promtool's own
    ``alert_rule_test``, which would want every annotation again.
    """
    tests = [
        _test(case, series, fires=fires)
        for case in cases
        for series, fires in [(case.fires, True), (case.silent, False), *((each, False) for each in case.others)]
    ]
    return json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests})


def _test(case: Case, series: Series, *, fires: bool) -> dict[str, Any]:
    expected = [{"labels": f'{{alertname="{case.alert}"}}', "value": 1}] if fires else []
    return {
        "interval": "1m",
        "name": f"{case.alert} {'fires' if fires else 'is silent'}: {dict(series)}",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'group by (alertname) (ALERTS{{alertname="{case.alert}",alertstate="firing"}})',
                "eval_time": f"{case.at}m",
                "exp_samples": expected,
            }
        ],
    }
