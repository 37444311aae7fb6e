"""Alarms as tests look at them, and waiting for one in `status`."""

import re
import time

import headgate
from headgate_coordinator.core.alarms import StandingAlarm
from support.processes import READY_S


def wait_for_alarm(hg: headgate.Headgate, text: str, table: str = "t", *, state: str = "", times: int = 0) -> str:
    """The first alarm of the table, or of the coordinator that was asked, that has ``text`` in it.

    ``state``: of the table at that moment. ``times``: how often at least the alarm says that it has happened. Fails when the
    table is quarantined, and after ``READY_S``.
    """
    deadline = time.monotonic() + READY_S
    while True:
        status = hg.status(table)
        found = status.tables[0]
        assert found.state != "quarantined", found.alarms
        for alarm in (*found.alarms, *status.alarms):
            if text in alarm and state in ("", found.state) and _times(alarm) >= times:
                return alarm
        assert time.monotonic() < deadline, f"no alarm with {text!r} within {READY_S:.0f} s: {status}"
        time.sleep(0.1)  # nothing tells a client of an alarm


def text_of(alarm: StandingAlarm | None) -> str:
    """Empty without an alarm."""
    return alarm.text if alarm else ""


def wait_until_quiet(hg: headgate.Headgate, text: str = "", table: str = "t") -> None:
    """Until no alarm of the table, or of the coordinator that is asked, has ``text`` in it."""
    deadline = time.monotonic() + READY_S
    while True:
        status = hg.status(table)
        found = status.tables[0]
        assert found.state != "quarantined", found.alarms
        if not [alarm for alarm in (*found.alarms, *status.alarms) if text in alarm]:
            return
        assert time.monotonic() < deadline, f"alarms with {text!r} stay: {status}"
        time.sleep(0.1)


def _times(alarm: str) -> int:
    found = re.search(r"\((\d+) times", alarm)
    return int(found[1]) if found else 0
