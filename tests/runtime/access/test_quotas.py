"""Quotas: which count for a principal, and what the access file may say of them."""

import math

import pytest

from headgate_runtime.access.file import AccessFileError, read_access_file
from headgate_runtime.access.quotas import Usage, usage_of

TEXT = """
[groups]
g = ["ann"]

[[quotas]]
principals = ["ann", "bob"]
rows_per_s = 100
channels = 5

[[quotas]]
groups = ["g"]
rows_per_s = 10
bytes_per_s = 2000
"""


def test_of_several_quotas_the_smallest_figures_count() -> None:
    quotas = read_access_file(TEXT).quotas
    assert usage_of(quotas, "ann", frozenset({"g"})) == Usage(10, 2000, 5)
    assert usage_of(quotas, "bob", frozenset()) == Usage(100, math.inf, 5)


def test_without_a_quota_a_principal_may_have_1000_channels_and_a_quota_raises_lowers_or_lifts_that() -> None:
    text = """
[[quotas]]
principals = ["many", "few"]
channels = 5000

[[quotas]]
principals = ["few", "fast"]
rows_per_s = "unlimited"
channels = 3

[[quotas]]
principals = ["free", "few"]
channels = "unlimited"

[[quotas]]
principals = ["slow"]
rows_per_s = 1
"""
    quotas = read_access_file(text).quotas
    assert usage_of((), "ann", frozenset()) == usage_of(quotas, "ann", frozenset()) == Usage(channels=1000)
    channels = {name: usage_of(quotas, name, frozenset()).channels for name in ("many", "few", "fast", "free", "slow")}
    assert channels == {"many": 5000, "few": 3, "fast": 3, "free": math.inf, "slow": 1000}


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        ('principals = ["a"]', "one or more of rows_per_s, bytes_per_s, channels, tables"),
        ("channels = 5", "wants principals or groups"),
        ('principals = ["a"]\nchannels = 0', "channels is '0': want a whole number from 1"),
        ('principals = ["a"]\nchannels = true', "channels is 'True'"),
        (
            'principals = ["a"]\nchannels = "many"',
            "channels is 'many': want a whole number from 1 to 2,147,483,647, or \"unlimited\"",
        ),
        ('principals = ["a"]\nrows_per_s = 1.5', "rows_per_s is '1.5'"),
        ('principals = ["a"]\nchannels = 2147483648', "channels is '2147483648'"),
        ('principals = ["a"]\ntables = 0', "tables is '0': want a whole number from 1"),
        ('principals = ["a"]\nrows = 5', "a quota has an unknown key 'rows'"),
        ('principals = ["cluster"]\nchannels = 5', "the cluster's own"),
    ],
)
def test_a_quota_that_is_not_understood_is_refused_by_its_line(quota: str, message: str) -> None:
    with pytest.raises(AccessFileError, match="line 2:") as refused:
        read_access_file(f"\n[[quotas]]\n{quota}\n")
    assert message in str(refused.value)
