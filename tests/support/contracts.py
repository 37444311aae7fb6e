"""All contracts, found as packages, so that a new file is looked at without a list that names it."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from google.protobuf.descriptor import FileDescriptor, MethodDescriptor

import headgate_proto


def files() -> Iterator[FileDescriptor]:
    """Of every module that was generated from a contract."""
    for module in pkgutil.walk_packages(headgate_proto.__path__, "headgate_proto."):
        if module.name.endswith("_pb2"):
            generated: Any = import_module(module.name)
            yield generated.DESCRIPTOR


METHODS: Final[Mapping[str, MethodDescriptor]] = {
    method.full_name: method for file in files() for service in file.services_by_name.values() for method in service.methods
}
"""By full name."""


def path_of(method: MethodDescriptor) -> str:
    """As calls name it: "/package.Service/Method"."""
    assert method.containing_service is not None
    return f"/{method.containing_service.full_name}/{method.name}"
