"""Keeps libraries from importing others that they would use if they could, and that Headgate does not need: pandas, rich."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Refusing(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == self._package:
            raise ModuleNotFoundError("Headgate's processes run without it", name=fullname)


def run_without_pandas() -> None:
    """From now on pandas cannot be imported in this process.

    Where it is installed, pyarrow imports it with the first scalar or array that it makes of Python's values. That takes 60 MiB
    and seconds, in which a writer's event loop would stand still longer than coordinators wait, and a coordinator would commit
    nothing.
    """
    sys.meta_path.insert(0, _Refusing("pandas"))


def run_without_rich() -> None:
    """From now on rich cannot be imported in this process. structlog imports it where it is installed, which takes a tenth of a
    service's start, for tracebacks that services do not print.
    """
    sys.meta_path.insert(0, _Refusing("rich"))
