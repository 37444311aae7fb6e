"""Keeps pyarrow from importing pandas, which no service uses, and no command but those on Spark."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError("Headgate's processes run without it", name=fullname)


def run_without_pandas() -> None:
    """From now on pandas cannot be imported in this process.

    Where it is installed, pyarrow imports it with the first scalar or array that it makes of Python's values. That takes 60 MiB
    and seconds, in which a writer's event loop would stand still longer than coordinators wait, and a coordinator would commit
    nothing.
    """
    sys.meta_path.insert(0, _WithoutPandas())
