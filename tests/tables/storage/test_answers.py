"""What errors of obstore's mean, by their text."""

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError

from headgate_tables.errors import StoreDeniedError, StoreUnavailableError
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
