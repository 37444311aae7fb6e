"""From an address to a store."""

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

import obstore.exceptions as obstore_errors

from headgate_tables.errors import OptionError
from headgate_tables.storage.local import LocalStore
from headgate_tables.storage.objects import ObjectStore
from headgate_tables.storage.store import Store
from headgate_tables.system import Ids

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def open_store(url: str, storage_options: Mapping[str, str] | None, ids: Ids, *, anchor: str = "") -> Store:
    """The store at ``url``; nothing is read or written yet.

    ``url``: ``file:///abs/path`` (percent-encoded, as URLs are), a plain path (relative ones from the working folder), or
    ``s3://bucket/prefix`` (literal, as S3's tools take it). ``storage_options``, S3 only, are obstore's settings as text:
    endpoint, region, access_key_id, secret_access_key, session_token, allow_http, virtual_hosted_style_request, timeout and
    others; what they leave out comes from the ``AWS_*`` environment variables. ``anchor``: see ``LocalStore``.
    Raises OptionError for another scheme, an incomplete address or a setting that is unknown or unreadable.
    """
    scheme = _SCHEME.match(url)
    name = scheme[1].lower() if scheme else None
    if name == "s3":
        return _open_s3(url, storage_options or {})
    if name not in (None, "file"):
        raise OptionError(
            f"{url}: the scheme {name} is not supported", fix="Use s3://bucket/prefix, file:///absolute/path or a plain path."
        )
    if storage_options:
        raise OptionError(
            f"{url}: storage_options given for a local folder", fix="Leave them out, or name the bucket as s3://bucket/prefix."
        )
    path = _path_of_file_url(url) if name else url
    if not path or "\0" in path:
        raise OptionError(f"{url!r} names no folder", fix="Give the path of the table's folder.")
    return LocalStore(os.path.abspath(path), ids, anchor=anchor)


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


def _open_s3(url: str, options: Mapping[str, str]) -> Store:
    bucket, _, prefix = url.partition("://")[2].rstrip("/").partition("/")
    if not bucket or (prefix and any(part in ("", ".", "..") for part in prefix.split("/"))):
        raise OptionError(f"{url} is no address in a bucket", fix="Write s3://bucket/prefix, without empty parts, `.` or `..`.")
    try:
        return ObjectStore(bucket, prefix, options)
    except (obstore_errors.UnknownConfigurationKeyError, obstore_errors.GenericError) as error:
        reason = str(error).partition("\n")[0]
        raise OptionError(
            f"storage_options: {reason}",
            fix="Use obstore's names for S3 settings (endpoint, region, access_key_id, …) and values that they can hold.",
        ) from error
