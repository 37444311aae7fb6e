"""JSON objects read key by key: a key that is missing or unknown, or a value of another type, is an error that names the key."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that another layer reads."""
T = TypeVar("T")
Read: TypeAlias = Callable[[object], T]
"""Returns the value in its own type. Raises UnfitError."""


class UnfitError(Exception):
    """``key``: path to the value, "" as long as no caller has added it; ``unknown``: a newer version may have written it."""

    def __init__(self, why: str, key: str = "", *, unknown: bool = False) -> None:
        super().__init__(f"its key {key!r} {why}")
        self.why = why
        self.key = key
        self.unknown = unknown

    def below(self, key: str) -> "UnfitError":
        """The same error, located in the object that holds ``key``."""
        return UnfitError(self.why, f"{key}.{self.key}" if self.key else key, unknown=self.unknown)


class Fields:
    """The keys of the JSON object ``content``, each to be read once, so that ``refuse_others`` finds those that nobody knows.

    Raises UnfitError for any other value.
    """

    __slots__ = ("_left",)

    def __init__(self, content: object) -> None:
        self._left = json_map(content)

    def required(self, key: str, read: Read[T]) -> T:
        """Raises UnfitError when the key is missing."""
        try:
            return read(self._left.pop(key))
        except KeyError:
            raise UnfitError("is missing", key) from None
        except UnfitError as error:
            raise error.below(key) from None

    def optional(self, key: str, read: Read[T]) -> T | None:
        """None when the key is missing."""
        return self.required(key, read) if key in self._left else None

    def has(self, key: str) -> bool:
        """Whether the key is there and was not read so far."""
        return key in self._left

    def rest(self) -> dict[str, Json]:
        """The keys that were not read so far; the caller knows every one of them."""
        return self._left

    def refuse_others(self) -> None:
        """Raises UnfitError for a key that nobody has read."""
        if self._left:
            raise UnfitError("is not known to this version", next(iter(self._left)), unknown=True)


def text(value: object) -> str:
    """Raises UnfitError, as all below."""
    if type(value) is not str:
        raise UnfitError("does not hold text")
    return value


def number(value: object) -> int:
    """A whole number."""
    if type(value) is not int:
        raise UnfitError("does not hold a whole number")
    return value


def flag(value: object) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise UnfitError("holds neither true nor false")
    return value


def nullable(read: Read[T]) -> Read[T | None]:
    """Null, or what ``read`` accepts."""
    return lambda value: None if value is None else read(value)


def texts(value: object) -> Sequence[str]:
    """A list of text."""
    if type(value) is not list:
        raise UnfitError("does not hold a list")
    for each in value:
        if type(each) is not str:
            raise UnfitError("holds a list of something other than text")
    return value


def json_list(value: object) -> Sequence[Json]:
    """A list of anything."""
    if type(value) is not list:
        raise UnfitError("does not hold a list")
    return value


def json_map(value: object) -> dict[str, Json]:
    """An object of anything."""
    if type(value) is not dict:
        raise UnfitError("does not hold an object")
    return value


def list_of(read: Read[T]) -> Read[list[T]]:
    """A list of what ``read`` accepts."""
    return lambda value: list(map(read, json_list(value)))


def map_of(read: Read[T]) -> Read[dict[str, T]]:
    """An object whose values ``read`` accepts."""

    def read_all(value: object) -> dict[str, T]:
        content = json_map(value)
        try:
            return {key: read(each) for key, each in content.items()}
        except UnfitError as error:
            raise _located(error, content, read) from None

    return read_all


def _located(error: UnfitError, content: Mapping[str, Json], read: Read[T]) -> UnfitError:
    for key, each in content.items():
        try:
            read(each)
        except UnfitError as found:
            return found.below(key)
    return error
