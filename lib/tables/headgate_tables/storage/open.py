"""From an address to a store."""

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

import obstore.exceptions as obstore_errors

from headgate_tables.errors import OptionError
from headgate_tables.storage.address import FORMS, Service, StoreAddress, check_no_credentials, read_address, scheme_of
from headgate_tables.storage.clients import bucket_client, check_values
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.objects import ObjectStore
from headgate_tables.storage.store import Store
from headgate_tables.system import Ids

_SETTINGS = {
    Service.S3: "Use obstore's names for S3 settings (endpoint, region, access_key_id, …) and values that they can hold.",
    Service.GCS: "Use obstore's names for GCS settings (service_account, base_url, …) and values that they can hold. "
    "GOOGLE_APPLICATION_CREDENTIALS is a file's path.",
    Service.AZURE: "Give account_name, or AZURE_STORAGE_ACCOUNT_NAME, and how to sign: account_key, sas_key, or client_id, "
    "client_secret and tenant_id. obstore's names, and values that they can hold.",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def open_store(url: str, storage_options: Mapping[str, str] | None, ids: Ids, *, anchor: str = "") -> Store:
    """The store at ``url``; nothing is read or written yet.

    ``url``: ``file:///abs/path`` (percent-encoded, as URLs are), a plain path (relative ones from the working folder), or a
    prefix of a bucket (literal, as S3's tools take it): ``s3://``, ``gs://``, ``az://`` or ``abfss://`` as in ``address.FORMS``.
    ``storage_options``, for buckets only, are obstore's settings for the service as text; what they leave out comes from the
    environment: ``AWS_*``, ``GOOGLE_*``, ``AZURE_*``. All know allow_http and timeout. S3: endpoint, region, access_key_id,
    secret_access_key, session_token, virtual_hosted_style_request; Google: service_account, service_account_key, bearer_token,
    base_url; Azure: account_name, account_key, sas_key, client_id, client_secret, tenant_id, endpoint; and others.
    ``anchor``: see ``LocalStore``.
    Raises OptionError for another scheme, an incomplete address or a setting that is unknown, missing or unreadable.
    """
    address = _address_in_bucket(url)
    if address is not None:
        return _open_bucket(address, storage_options or {})
    if storage_options:
        raise OptionError(
            f"{url}: storage_options given for a local folder", fix="Leave them out, or name the bucket as s3://bucket/prefix."
        )
    return LocalStore(_local_path(url), ids, anchor=anchor)


def check_below(url: str, root: str) -> None:
    """Raises OptionError unless ``url`` lies below ``root``, both as ``open_store`` takes them. Opens nothing."""
    (kind, path), (wanted, above) = _parts(url), _parts(root)
    if kind != wanted or path[: len(above)] != above or len(path) == len(above):
        raise OptionError(
            f"{url} does not lie below {root}, and nothing else is opened here",
            fix="Correct the setting `store`, or find out which process named that address.",
        )


def _parts(url: str) -> tuple[tuple[object, ...], list[str]]:
    """What has to be equal, and the path in it."""
    address = _address_in_bucket(url)
    if address is None:
        return (), [part for part in _local_path(url).split("/") if part]
    return (address.service, address.bucket, *sorted(address.settings.items())), [
        part for part in address.prefix.split("/") if part
    ]


def _address_in_bucket(url: str) -> StoreAddress | None:
    """None for a folder of this machine."""
    found = _SCHEME.match(url)
    name = found[1].lower() if found else None
    if name not in (None, "file"):
        check_no_credentials(url, name)
    if name and (scheme := scheme_of(name)):
        return read_address(url, scheme)
    if name not in (None, "file"):
        raise OptionError(
            f"{url}: the scheme {name} is not supported",
            fix=f"Use {', '.join(FORMS.values())}, file:///absolute/path or a plain path.",
        )
    return None


def _local_path(url: str) -> str:
    path = _path_of_file_url(url) if _SCHEME.match(url) else url
    if not path or "\0" in path:
        raise OptionError(f"{url!r} names no folder", fix="Give the path of the table's folder.")
    return os.path.abspath(path)


def _path_of_file_url(url: str) -> str:
    rest = url[len("file:") :]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise OptionError(
                f"{url}: {host} stands where a file URL has a host", fix="Write file:///absolute/path, with three slashes."
            )
        rest = slash + path
    return unquote(rest)


def _open_bucket(address: StoreAddress, options: Mapping[str, str]) -> Store:
    check_values(bucket_client(address, options), address.url)
    try:
        return ObjectStore(address, options)
    except (obstore_errors.UnknownConfigurationKeyError, obstore_errors.GenericError) as error:
        reason = str(error).partition("\n")[0]
        raise OptionError(f"{address.url}: storage_options: {reason}", fix=_SETTINGS[address.service]) from error
