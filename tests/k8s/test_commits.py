"""The longest wait for a commit in a span of time."""

import pytest

from k8s.commits import Gap, longest_gap


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        pytest.param([9.0, 11.0, 14.0, 20.5], Gap(6.5, 14.0), id="the wait that ends behind the span counts whole"),
        pytest.param([4.0, 15.0, 19.0, 21.0], Gap(5.0, 10.0), id="what lies before the span does not count"),
        pytest.param([1.0, 9.0, 12.0, 19.0, 21.0, 40.0], Gap(7.0, 12.0), id="waits before and behind do not count"),
        pytest.param([9.0, 12.0], Gap(8.0, 12.0), id="without a commit behind it lasts until the end"),
        pytest.param([], Gap(10.0, 10.0), id="never a commit"),
    ],
)
def test_the_longest_wait(moments: list[float], expected: Gap) -> None:
    assert longest_gap(moments, 10.0, 20.0) == expected
