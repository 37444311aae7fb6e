"""What an error of obstore's means: for a create an outcome or a refusal, for everything else one of the library's errors.

obstore reports a status only in an error's text, and gives 409 and 412 the same class.
"""

import re

import obstore.exceptions as obstore_errors

from headgate_tables.errors import (
    CorruptFileError,
    StoreDeniedError,
    StoreFullError,
    StoreUnavailableError,
    TablesError,
    UnsafeStoreError,
)
from headgate_tables.storage.store import Outcome

AnswerError = (obstore_errors.BaseError, FileNotFoundError)
"""What obstore raises for an answer that is no success, or for none. (ValueError: the path cannot be a key.)"""

_ANSWER = re.compile(r"Server returned (non-2xx status code: \d{3}[^:]*|error response): ")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_LONGEST = 300
"""Characters of a store's answer in an error."""
_STATUS = re.compile(r"Error performing [A-Z]+ \S+ in \S+ - Server returned non-2xx status code: (\d{3})")
_UNDECIDED = (408, 409, 429)
"""4xx answers after which the same create may be sent again: timeout, a conflicting request under way, too many requests."""


_TIMED_OUT = "<Code>RequestTimeout</Code>"
"""What S3 says with a 400 when an upload stalls, and others with a 408."""
_AZURE_EXISTS = "<Code>BlobAlreadyExists</Code>"
"""What Azure says with a 409, which means a conflicting request elsewhere."""
_ASKED_IDENTITY = re.compile(r"Error performing (token request|[A-Z]+ http://169\.254\.169\.254/)")
_CREDENTIALS = {
    "S3": "access_key_id and secret_access_key in storage_options, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "GCS": "service_account (a file) in storage_options, or GOOGLE_APPLICATION_CREDENTIALS",
    "MicrosoftAzure": "account_key or sas_key in storage_options, or AZURE_STORAGE_ACCOUNT_KEY",
}
"""By the name that obstore's errors have for the service."""


def outcome_of(error: Exception, key: str) -> Outcome:
    """What became of a conditional create that failed with ``error`` (rule C4).

    UNKNOWN for no answer, 409, 5xx and the like. Raises StoreDeniedError, StoreFullError or UnsafeStoreError for an
    answer that says for certain that nothing was created, and why.
    """
    status = _status(error, key)
    if isinstance(error, obstore_errors.AlreadyExistsError) and (status != 409 or _AZURE_EXISTS in _without_key(error, key)):
        return Outcome.EXISTS
    if status == 501:
        raise UnsafeStoreError(
            f"the store does not implement conditional writes: {_reason(error)}",
            fix="Use a store that honours If-None-Match on PUT, or upgrade this one.",
        ) from None
    if _is_refusal(error, status) or status == 507:
        raise failure(error, key) from None
    return Outcome.UNKNOWN


def failure(error: Exception, key: str) -> TablesError:
    """The library's error for any other failed request, or a refused create. Raise it from None: obstore's own text is in
    tracebacks otherwise, with all that the store said.
    """
    status, reason = _status(error, key), _reason(error)
    if status == 507 or "<Code>QuotaExceeded</Code>" in str(error):
        return StoreFullError(reason, fix="Free space or raise the quota, then make the same call again.")
    if isinstance(error, obstore_errors.InvalidPathError):
        return CorruptFileError(reason, fix="Remove that key: a name with an empty part or `..` in it is not a file of a table.")
    if _ASKED_IDENTITY.search(_without_key(error, key)):
        return _no_identity(error, reason, status)
    if "Received redirect" in reason:
        return StoreDeniedError(reason, fix="Give the bucket's own region in storage_options.")
    if status == 404 or isinstance(error, FileNotFoundError):
        return StoreDeniedError(reason, fix="Create the bucket or container, or correct the table's address.")
    if _is_refusal(error, status):
        return StoreDeniedError(reason, fix="Check the credentials in storage_options and what the bucket's policy permits.")
    return StoreUnavailableError(reason, fix="Check the endpoint and the network, then make the same call again.")


def _no_identity(error: Exception, reason: str, status: int | None) -> TablesError:
    """Without other credentials obstore asked for the machine's own identity, which only machines in a cloud have."""
    named = next((given for service, given in _CREDENTIALS.items() if f"Generic {service} error" in str(error)), None)
    fix = f"Give credentials: {named or 'in storage_options or the environment'}. On a cloud's machine, give that an identity."
    return (StoreDeniedError if status and 400 <= status < 500 else StoreUnavailableError)(reason, fix=fix)


def _is_refusal(error: Exception, status: int | None) -> bool:
    refused = (obstore_errors.PermissionDeniedError, obstore_errors.UnauthenticatedError, FileNotFoundError)
    if isinstance(error, refused) or "Received redirect" in str(error):
        return True
    return status is not None and 400 <= status < 500 and status not in _UNDECIDED


def _status(error: Exception, key: str) -> int | None:
    text = _without_key(error, key)
    found = _STATUS.search(text)
    return None if found is None else 408 if _TIMED_OUT in text else int(found[1])


def _without_key(error: Exception, key: str) -> str:
    # The text begins with the key as it is; a partition value must not be able to pass for a status.
    return str(error).replace(key, "")


def _reason(error: Exception) -> str:
    """What obstore says, and of the store's answer its code and message alone, cut. The rest repeats the request: S3 gives an
    expired session token back (Token-0), and with a wrong signature all headers that were signed (CanonicalRequest).
    """
    text = str(error).partition("\n\nDebug source")[0].strip()
    found = _ANSWER.search(text)
    if found is None:
        return text.rstrip(".")
    answer = text[found.end() :]
    parts = [each[1] for each in (_CODE.search(answer), _MESSAGE.search(answer)) if each]
    said = ": ".join(parts) if answer.lstrip("\ufeff").startswith("<") else answer
    return f"{text[: found.end()]}{said[:_LONGEST]}".rstrip(". :\n")
