"""Addresses in object stores: which service, which bucket, which prefix. Pure."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from headgate_tables.errors import OptionError


class Scheme(enum.Enum):
    """How an address begins. Spark knows ``gs`` and ``abfss``; ``az`` is what hudi-rs and other Rust programs take, too."""

    S3 = "s3"
    GS = "gs"
    AZ = "az"
    ABFSS = "abfss"


class Service(enum.Enum):
    """A service that stores objects, each with an API of its own."""

    S3 = "S3"
    GCS = "Google Cloud Storage"
    AZURE = "Azure Blob Storage"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A prefix of a bucket, or of a container as Azure calls it. ``url``: without a trailing slash.

    ``settings``: those of obstore's that the address itself gives.
    """

    service: Service
    bucket: str
    prefix: str
    url: str
    settings: Mapping[str, str]


FORMS = {
    Scheme.S3: "s3://bucket/prefix",
    Scheme.GS: "gs://bucket/prefix",
    Scheme.AZ: "az://container/prefix",
    Scheme.ABFSS: "abfss://container@account.dfs.core.windows.net/prefix",
}

_ACCOUNT = re.compile(r"([a-z0-9]+)\.dfs\.([a-z0-9.-]+)")
_PUBLIC_CLOUD = "core.windows.net"
_CLOUDS = (_PUBLIC_CLOUD, "core.chinacloudapi.cn", "core.usgovcloudapi.net")
"""Hosts that an address may name: requests to any other would take this process's credentials where a stranger wants them."""
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._-]*")
_PASSWORD = re.compile(r"://[^/]*:.*@|[?&](sig|x-amz-signature)=", re.IGNORECASE | re.DOTALL)
_USER = re.compile(r"://[^/]*@")
_CONTAINER_FIRST = ("abfss", "abfs", "wasbs", "wasb")


def scheme_of(name: str) -> Scheme | None:
    """The scheme of this name; None when it is not an object store's."""
    return next((scheme for scheme in Scheme if scheme.value == name.lower()), None)


def service_of(scheme: Scheme) -> Service:
    """The service behind a scheme; Azure has two schemes."""
    match scheme:
        case Scheme.S3:
            return Service.S3
        case Scheme.GS:
            return Service.GCS
        case Scheme.AZ | Scheme.ABFSS:
            return Service.AZURE
        case _:
            assert_never(scheme)


def check_no_credentials(url: str, scheme: str) -> None:
    """Raises OptionError, which does not repeat them, for Hadoop's old s3://KEY:SECRET@bucket, http://USER:PASSWORD@host and
    signed addresses: addresses are in errors, logs and answers. Azure's of Hadoop have the container before the @.
    """
    if _PASSWORD.search(url) or (_USER.search(url) and scheme not in _CONTAINER_FIRST):
        raise OptionError(
            f"{scheme}://…: credentials stand in the address", fix="Give them in storage_options or in the environment."
        )


def read_address(url: str, scheme: Scheme) -> StoreAddress:
    """``url`` begins with ``scheme``; the prefix is literal, as S3's tools take it. Raises OptionError."""
    place, _, prefix = url.partition("://")[2].rstrip("/").partition("/")
    if not place or (prefix and any(part in ("", ".", "..") for part in prefix.split("/"))):
        raise _no_address(url, scheme)
    whole = f"{scheme.value}://{place}/{prefix}".rstrip("/")
    if not _BUCKET.fullmatch(place.partition("@")[0] if scheme is Scheme.ABFSS else place):
        raise _no_address(url, scheme)
    if scheme is not Scheme.ABFSS:
        return StoreAddress(service_of(scheme), place, prefix, whole, {})
    container, _, host = place.partition("@")
    found = _ACCOUNT.fullmatch(host)
    if not container or not found:
        raise _no_address(url, scheme)
    account, cloud = found.groups()
    if cloud not in _CLOUDS:
        raise OptionError(
            f"{url}: {cloud} is not a cloud of Azure's",
            fix=f"An address may name {', '.join(_CLOUDS)}. For another server write {FORMS[Scheme.AZ]} and give its endpoint in "
            "storage_options.",
        )
    # obstore speaks with the account's blob endpoint. Left out for the public cloud, so that the environment can name another.
    endpoint = {} if cloud == _PUBLIC_CLOUD else {"endpoint": f"https://{account}.blob.{cloud}"}
    return StoreAddress(Service.AZURE, container, prefix, whole, {"account_name": account, **endpoint})


def _no_address(url: str, scheme: Scheme) -> OptionError:
    return OptionError(f"{url} is not an address in a bucket", fix=f"Write {FORMS[scheme]}, without empty parts, `.` or `..`.")
