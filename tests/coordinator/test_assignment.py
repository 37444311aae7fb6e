"""Who has which key groups (rule EX3)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest

from headgate_coordinator.core.assignment import LEVEL, MeasuredLoad, assign
from headgate_coordinator.core.membership import Memberships

KEY_GROUPS = 128
Loads = Mapping[int, int]


def layout(seed: int) -> Loads:
    """64 file groups of uneven load, hashed into the key groups as 8 partitions x 8 buckets would be."""
    random = Random(seed)
    loads: Counter[int] = Counter()
    for _ in range(64):
        loads[random.randrange(KEY_GROUPS)] += random.randint(200_000, 1_800_000)
    return loads


def shares(assigned: Sequence[str], loads: Loads, members: Sequence[str]) -> list[int]:
    by_member = Counter(dict.fromkeys(members, 0))
    for group, size in loads.items():
        by_member[assigned[group]] += size
    return list(by_member.values())


def moved(before: Sequence[str], after: Sequence[str]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("before", "after"), [("a", "ab"), ("ab", "abc"), ("abc", "abcd"), ("abc", "ab"), ("abc", "bc"), ("abcd", "abd")]
)
def test_three_borders_after_a_join_or_leave_the_largest_share_is_at_most_one_and_a_half_of_the_smallest(
    seed: int, before: str, after: str
) -> None:
    loads, random = layout(seed), Random(seed)
    measured = MeasuredLoad(KEY_GROUPS)

    def run_checkpoint() -> None:
        measured.add_checkpoint({group: int(size * random.uniform(0.7, 1.3)) for group, size in loads.items()})

    borders = [assign([], list(before), measured.weights(), few=False)]
    for members in (before, before, after, after, after):
        run_checkpoint()
        borders.append(assign(borders[-1], list(members), measured.weights()))
    worst, best = max(each := shares(borders[-1], loads, after)), min(each)
    assert worst <= 1.5 * best
    homeless = sum(member not in after for member in borders[2])
    assert all(moved(*pair) <= homeless + -(-KEY_GROUPS // 3) + 1 for pair in pairwise(borders[1:]))


def test_balanced_shares_are_left_alone() -> None:
    assigned = assign(["a", "b", "a", "b"], ["a", "b"], [10.0, 10.0, 10.0, 10.5])
    assert assigned == ["a", "b", "a", "b"]


def test_a_member_that_is_gone_leaves_its_groups_to_the_others_and_nothing_else_moves() -> None:
    before = ["a", "b", "c", "a", "b", "c"]
    after = assign(before, ["a", "b"], [1.0] * 6)
    assert [new for old, new in zip(before, after, strict=True) if old != "c"] == ["a", "b", "a", "b"]
    assert Counter(after) == {"a": 3, "b": 3}


def test_groups_are_exchanged_where_no_single_move_helps() -> None:
    assigned = assign(["a", "a", "b", "b"], ["a", "b"], [8.0, 6.0, 5.0, 3.0])
    assert sorted(shares(assigned, {0: 8, 1: 6, 2: 5, 3: 3}, "ab")) == [11, 11]


def test_a_group_that_outweighs_all_others_does_not_keep_those_from_being_spread() -> None:
    assigned = assign(["a", "b", "b", "b", "b"], ["a", "b", "c"], [1000.0, 1.0, 1.0, 1.0, 1.0])
    assert Counter(assigned) == {"a": 1, "b": 2, "c": 2}


def test_without_members_nobody_has_anything_and_afterwards_everything_is_given_out_again() -> None:
    assert assign(["a", "b"], [], [1.0, 1.0]) == []
    assert assign([], ["c"], [1.0, 1.0]) == ["c", "c"]


def test_before_any_measurement_groups_are_spread_by_number() -> None:
    measured = MeasuredLoad(KEY_GROUPS)
    assert not measured.is_known
    sizes = Counter(assign([], ["a", "b", "c"], measured.weights(), few=False))
    assert sizes["a"] <= LEVEL * sizes["c"]


def test_before_any_measurement_a_join_moves_its_whole_share_at_once() -> None:
    memberships = Memberships(KEY_GROUPS)
    memberships.next_membership(1, [("a", "a:1")])
    sizes = Counter(memberships.next_membership(2, [("a", "a:1"), ("b", "b:1")]).assignment)
    assert sizes[0] <= LEVEL * sizes[1]


def test_with_many_light_groups_a_border_moves_as_many_as_it_may() -> None:
    assigned = assign(["a"] * KEY_GROUPS, ["a", "b"], [1.0] * KEY_GROUPS)
    assert Counter(assigned) == {"a": 85, "b": 43}


def test_a_checkpoint_of_few_rows_does_not_upset_what_many_rows_have_shown() -> None:
    measured = MeasuredLoad(2)
    measured.add_checkpoint({0: 1_000_000, 1: 1_000_000})
    measured.add_checkpoint({0: 10})
    heavy, light = measured.weights()
    assert heavy == pytest.approx(light, rel=0.001)


def test_a_load_that_changes_for_good_is_followed() -> None:
    measured = MeasuredLoad(2)
    measured.add_checkpoint({0: 1000})
    for _ in range(5):
        measured.add_checkpoint({1: 1000})
    first, second = measured.weights()
    assert second > 8 * first
