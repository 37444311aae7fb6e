"""What a walk has shown: which one broke a rule, and whether one did."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from support.coordinator_sim.slots import StuckError, ViolationError


@contextmanager
def naming(walk: str) -> Iterator[None]:
    """A violation inside the block names the walk, which repeats exactly."""
    try:
        yield
    except ViolationError as error:
        raise AssertionError(f"{walk}: {error}") from error


def is_wrong(run: Callable[[], None]) -> bool:
    """Whether something false was committed or told; that a broken rule also keeps a walk from coming to rest proves less."""
    try:
        run()
    except StuckError:
        return False
    except ViolationError:
        return True
    return False
