"""Assigns key groups to the members of the next checkpoint (rule EX3)."""

from collections.abc import Mapping, Sequence
from itertools import product

LEVEL = 1.1
"""Ratio of the largest to the smallest share at which moving stops."""
MOVES_PER_BORDER = 3
"""A border under load moves at most one nth of all key groups by choice: a second writer has its half after two borders."""


class MeasuredLoad:
    """Arrow bytes by key group, smoothed over checkpoints. A checkpoint weighs as much as its bytes, so small ones change
    little.
    """

    def __init__(self, key_groups: int) -> None:
        self._bytes = [0.0] * key_groups

    def add_checkpoint(self, checkpoint_bytes: Mapping[int, int]) -> None:
        """Adds a decided checkpoint; ignores key groups that do not exist."""
        measured = [float(max(0, checkpoint_bytes.get(group, 0))) for group in range(len(self._bytes))]
        total = sum(measured)
        if total > 0:
            weight = total / (total + sum(self._bytes))
            self._bytes = [old + weight * (new - old) for old, new in zip(self._bytes, measured, strict=True)]

    @property
    def is_known(self) -> bool:
        """Whether anything was measured."""
        return any(self._bytes)

    def weights(self) -> list[float]:
        """Weight of each key group, above 0: groups without rows weigh a little, so that they are spread too."""
        floor = sum(self._bytes) / len(self._bytes) / 16
        return [each + floor for each in self._bytes] if floor > 0 else [1.0] * len(self._bytes)


def assign(previous: Sequence[str], members: Sequence[str], weights: Sequence[float], *, few: bool = True) -> list[str]:
    """Returns the member of each key group. ``previous``: the member of each in the checkpoint before; may be empty.

    Groups of members that are gone go to the lightest, heaviest first. Then groups move from the heaviest member to the
    lightest ones until the largest share is ``LEVEL`` of the smallest, nothing helps, or, with ``few``, the border's moves are
    used up.
    """
    if not members:
        return []
    had = list(previous) or [""] * len(weights)
    shares: dict[str, list[int]] = {member: [] for member in members}
    for group, member in enumerate(had):
        if member in shares:
            shares[member].append(group)
    loads = {member: sum(weights[group] for group in groups) for member, groups in shares.items()}
    homeless = [group for group, member in enumerate(had) if member not in shares]
    for group in sorted(homeless, key=lambda group: (-weights[group], group)):
        lightest = min(loads, key=lambda member: (loads[member], len(shares[member])))
        shares[lightest].append(group)
        loads[lightest] += weights[group]
    moves = -(-len(weights) // MOVES_PER_BORDER) if few else 2 * len(weights)
    while moves > 0 and (moved := _even_out(shares, loads, weights)):
        moves -= moved
    assigned = [""] * len(weights)
    for member, groups in shares.items():
        for group in groups:
            assigned[group] = member
    return assigned


def _even_out(shares: dict[str, list[int]], loads: dict[str, float], weights: Sequence[float]) -> int:
    """Makes one move, or else one exchange, from the heaviest member that can give to the lightest that can take.

    Returns how many key groups moved. A member with one group that outweighs a fair share cannot give; others still can.
    """
    by_load = sorted(loads, key=lambda member: loads[member])
    pairs = [
        (heavier, lighter) for heavier in reversed(by_load) for lighter in by_load if loads[heavier] > LEVEL * loads[lighter]
    ]
    for heavier, lighter in pairs:
        gap = loads[heavier] - loads[lighter]
        single = _best(gap, [(weights[group], (group, None)) for group in shares[heavier]])
        swaps = product(shares[heavier], shares[lighter]) if single is None else ()
        chosen = single or _best(gap, [(weights[group] - weights[back], (group, back)) for group, back in swaps])
        if chosen is not None:
            group, back = chosen
            _move(group, heavier, lighter, shares, loads, weights)
            if back is None:
                return 1
            _move(back, lighter, heavier, shares, loads, weights)
            return 2
    return 0


def _best(gap: float, options: Sequence[tuple[float, tuple[int, int | None]]]) -> tuple[int, int | None] | None:
    """Returns the option that comes closest to halving the gap, among those that narrow it by more than rounding."""
    useful = [(abs(weight - gap / 2), option) for weight, option in options if gap * 1e-6 < weight < gap * (1 - 1e-6)]
    return min(useful, key=lambda each: each[0])[1] if useful else None


def _move(
    group: int, source: str, target: str, shares: dict[str, list[int]], loads: dict[str, float], weights: Sequence[float]
) -> None:
    shares[source].remove(group)
    shares[target].append(group)
    loads[source] -= weights[group]
    loads[target] += weights[group]
