"""Flags of a service: one for each of its settings."""

import argparse
from collections.abc import Mapping
from typing import Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from headgate_runtime.values import as_written


def flags_of(fields: Mapping[str, FieldInfo], prefix: str, prog: str, about: str) -> argparse.ArgumentParser:
    """A parser that leaves out what no flag sets. ``prefix``: of the variables that set the same."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=about,
        epilog=f"Every setting is also read from the environment ({prefix}NAME) and from the file of --config (name = value).",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file with settings; flags and the environment override it")
    for name, field in fields.items():
        _add_flag(parser, name, field)
    return parser


def _add_flag(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    flag = "--" + name.replace("_", "-")
    text = f"{field.description} {_default(field)}".replace("%", "%%")
    if field.annotation is bool:
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
        return
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else None
    metavar = "|".join(choices) if choices else name.rpartition("_")[2].upper()
    parser.add_argument(flag, metavar=metavar, help=text)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "[required]"
    shown = field.get_default(call_default_factory=True)
    return f"[{as_written(shown, field.metadata)}]" if shown not in ("", [], False, SecretStr("")) else ""
