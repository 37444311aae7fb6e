"""Lines in the log about requests that cannot be read: one at once, then one now and then, with how many came in between."""

import pytest
import structlog

from headgate_runtime.errors import RpcError
from headgate_runtime.requests import QUIET_S, RequestReader
from support.hand_clock import HandClock


def test_lines_are_far_apart_and_count_what_they_leave_out() -> None:
    clock = HandClock()
    read = RequestReader(clock).of_method("/headgate.api.v1.TableService/DescribeTable")
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            for _ in range(5):
                with pytest.raises(RpcError, match="DescribeTableRequest"):
                    read(b"\xff")
            clock.now += QUIET_S
    assert [entry["more_since_the_last_line"] for entry in logged] == [0, 4, 4]
