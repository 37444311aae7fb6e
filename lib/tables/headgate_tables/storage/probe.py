"""Refuses a store on which two writers could both win."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from headgate_tables.backoff import Backoff
from headgate_tables.errors import StoreUnavailableError, UnsafeStoreError
from headgate_tables.storage.store import Outcome, Store
from headgate_tables.system import Clock, System

_RACERS = 8
_ATTEMPTS = 5
_PAUSES = Backoff(first=0.2, longest=1.0)
"""Between the attempts: Google Cloud Storage takes one write a second under the same name, and refuses more with 429."""


def probe(store: Store, within: str, system: System) -> None:
    """Tests conditional creates and the reads after them under a fresh name in the folder ``within``, and cleans up.

    Eight creates at once give one success; a later one finds the name taken and changes nothing; the file is read and listed
    at once. Takes about 14 requests. Raises UnsafeStoreError when the store fails that, StoreUnavailableError when it did not
    say enough to tell, and whatever a call of the store raises.
    """
    folder = f"{within}/{system.ids.token()}"
    fault = _find_fault(store, folder, system.clock)
    store.delete_folder(folder)
    if fault:
        raise UnsafeStoreError(
            f"{store.url}: {fault}",
            fix="Move the table to a store that honours conditional creates (Amazon S3 does), or to a local disk.",
        )


def _find_fault(store: Store, folder: str, clock: Clock) -> str | None:
    path = f"{folder}/one"
    outcomes = _race(store, path)
    winners = [racer for racer, outcome in enumerate(outcomes) if outcome is Outcome.CREATED]
    # A store may leave some of the racers without an answer (S3 answers 409); one of those may then be the winner.
    possible = winners or [racer for racer, outcome in enumerate(outcomes) if outcome is Outcome.UNKNOWN]
    if len(winners) > 1:
        return f"{len(winners)} of {_RACERS} simultaneous creates of one file succeeded, so it ignores conditional writes"
    if not possible:
        return "none of several simultaneous creates of a fresh name succeeded"
    try:
        content = store.get(path).to_pybytes()
    except FileNotFoundError:
        if winners:
            return "a file could not be read right after it was created"
        raise _undecided(store) from None
    if content not in [_content(racer) for racer in possible]:
        return "a file holds another content than the one whose create succeeded"
    again = _create_again(store, path, clock)
    if again is Outcome.UNKNOWN:
        raise _undecided(store)
    if again is Outcome.CREATED or store.get(path).to_pybytes() != content:
        return "a create on a name that was taken succeeded, so it ignores conditional writes"
    if store.list_folder(folder).files != ["one"]:
        return "a file was not listed right after it was created"
    return None


def _create_again(store: Store, path: str, clock: Clock) -> Outcome:
    for attempt in range(_ATTEMPTS):
        clock.sleep(_PAUSES.after(attempt))
        outcome = store.create(path, [_content(_RACERS)], durable=False)
        if outcome is not Outcome.UNKNOWN:
            return outcome
    return Outcome.UNKNOWN


def _race(store: Store, path: str) -> list[Outcome]:
    start = Barrier(_RACERS)

    def run(racer: int) -> Outcome:
        start.wait()
        return store.create(path, [_content(racer)], durable=False)

    with ThreadPoolExecutor(_RACERS) as racers:
        return list(racers.map(run, range(_RACERS)))


def _content(racer: int) -> bytes:
    return f"racer {racer}".encode()


def _undecided(store: Store) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{store.url} did not say what became of the creates that tested it",
        fix="Check the endpoint and the network, then make the same call again.",
    )
