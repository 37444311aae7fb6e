"""Waits for a commit, against faults that explain them or do not."""

import pytest

from nemesis.gaps import Fault, Gap, gaps

FAULT = Fault(10.0, 20.0, "fault")
NEXT = Fault(30.0, 31.0, "next")


@pytest.mark.parametrize(
    ("commits", "faults", "expected"),
    [
        pytest.param([4.0], [], [Gap(4.0, 0.0, "no fault"), Gap(36.0, 4.0, "no fault")], id="without faults all counts"),
        pytest.param([9.0, 25.0, 40.0], [FAULT], [Gap(5.0, 20.0, "fault"), Gap(15.0, 25.0, "fault")], id="from a fault's end"),
        pytest.param([9.0, 15.0], [FAULT], [Gap(20.0, 20.0, "fault")], id="a commit within a fault is not its end"),
        pytest.param([9.0, 35.0], [FAULT, NEXT], [Gap(10.0, 20.0, "fault"), Gap(4.0, 31.0, "next")], id="until the next fault"),
        pytest.param([], [FAULT], [Gap(10.0, 0.0, "no fault"), Gap(20.0, 20.0, "fault")], id="never a commit"),
    ],
)
def test_a_wait_counts_from_the_later_of_commit_and_end_of_fault(
    commits: list[float], faults: list[Fault], expected: list[Gap]
) -> None:
    found = gaps(commits, faults, 0.0, 40.0)
    assert [gap for gap in found if gap in expected] == expected
    assert max(gap.seconds for gap in found) == max(gap.seconds for gap in expected)
