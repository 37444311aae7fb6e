"""What errors of obstore's mean, by their text."""

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from headgate_tables.errors import StoreDeniedError, StoreFullError, StoreUnavailableError
from headgate_tables.storage.answers import failure, outcome_of
from headgate_tables.storage.store import Outcome

ASKED = "Error performing GET http://169.254.169.254/token in 1ms - "
NO_IDENTITY = [
    (f"Generic S3 error: {ASKED}", "AWS_ACCESS_KEY_ID"),
    (f"Generic GCS error: Error performing token request: {ASKED}", "GOOGLE_APPLICATION_CREDENTIALS"),
    (f"Generic MicrosoftAzure error: Error performing token request: {ASKED}", "AZURE_STORAGE_ACCOUNT_KEY"),
]


@pytest.mark.parametrize(("text", "variable"), NO_IDENTITY)
def test_an_error_about_missing_credentials_names_their_options(text: str, variable: str) -> None:
    refused = GenericError(f"{text}Server returned non-2xx status code: 404 Not Found: ")
    silent = GenericError(f"{text}HTTP error: error sending request")
    for error, meant in [(refused, StoreDeniedError), (silent, StoreUnavailableError)]:
        told = failure(error, "some/file")
        assert type(told) is meant
        assert "Give credentials: " in str(told)
        assert variable in str(told)


def test_a_create_whose_token_did_not_come_is_sent_again_and_one_that_was_refused_is_not() -> None:
    text = NO_IDENTITY[1][0]
    assert outcome_of(GenericError(f"{text}Server returned non-2xx status code: 503 : "), "a/file") is Outcome.UNKNOWN
    with pytest.raises(StoreDeniedError, match="Give credentials"):
        outcome_of(GenericError(f"{text}Server returned non-2xx status code: 403 : "), "a/file")


def test_a_conflict_is_a_taken_name_only_where_the_store_calls_it_so() -> None:
    said = "Error performing PUT http://store/x in 1ms - Server returned non-2xx status code: 409 Conflict: "
    taken, racing = "<Code>BlobAlreadyExists</Code>", "<Code>ConditionalRequestConflict</Code>"
    assert outcome_of(AlreadyExistsError(said + taken), "a/file") is Outcome.EXISTS
    assert outcome_of(AlreadyExistsError(said + racing), "a/file") is Outcome.UNKNOWN
    assert outcome_of(AlreadyExistsError(f"Object at {taken} exists: {said}{racing}"), taken) is Outcome.UNKNOWN


def test_an_upload_that_stalled_is_no_refusal() -> None:
    said = "Error performing PUT http://store/x in 9s - Server returned non-2xx status code: 400 Bad Request: "
    stalled = GenericError(f"{said}<Error><Code>RequestTimeout</Code></Error>")
    assert outcome_of(stalled, "a/file") is Outcome.UNKNOWN
    assert isinstance(failure(stalled, "a/file"), StoreUnavailableError)
    with pytest.raises(StoreDeniedError):
        outcome_of(GenericError(f"{said}<Error><Code>InvalidRequest</Code></Error>"), "a/file")


SECRET = "hunter2-session-token"
EXPIRED = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>'
    f"<Token-0>{SECRET}</Token-0></Error>"
)
MISMATCH = (
    "<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message>"
    f"<CanonicalRequest>GET\n/\nx-amz-security-token:{SECRET}\n</CanonicalRequest></Error>"
)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (EXPIRED, "ExpiredToken: The provided token has expired"),
        (f"\ufeff{EXPIRED}", "ExpiredToken: The provided token has expired"),
        (MISMATCH, "SignatureDoesNotMatch: The signature does not match"),
        (f"<html>{SECRET}</html>", "http://store/x"),
        ('{"error": "invalid_grant"}', "invalid_grant"),
        ("x" * 300 + SECRET, "x" * 300),
    ],
)
@pytest.mark.parametrize("how", ["non-2xx status code: 403 Forbidden", "error response"])
def test_of_a_stores_answer_an_error_repeats_the_code_and_the_message_alone(how: str, answer: str, said: str) -> None:
    """S3 gives session tokens back."""
    asked = "Generic S3 error: Error performing GET http://store/x in 1ms - Server returned"
    told = str(failure(GenericError(f"{asked} {how}: {answer}\n\nDebug source:\n{answer}"), "a/file"))
    assert SECRET not in told
    assert said in told


def test_the_store_is_told_full_by_its_code() -> None:
    text = "Error performing PUT http://store/x in 1ms - Server returned non-2xx status code: 400 Bad Request: "
    with pytest.raises(StoreFullError, match="QuotaExceeded: no room"):
        outcome_of(GenericError(f"{text}<Error><Code>QuotaExceeded</Code><Message>no room</Message></Error>"), "a/file")
