"""A further token in an access file that people wrote: its line stands where it counts, and all else stays."""

from datetime import UTC, datetime

import pytest

from headgate_cli.credentials.further_token import with_token
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_runtime.access.file import read_access_file
from headgate_runtime.access.tokens import digest_of

END = datetime(2026, 11, 2, tzinfo=UTC)
NEW, OLD, ANN = digest_of("new"), digest_of("old"), digest_of("ann")
ROLE = '[[roles]]\nprincipals = ["operator"]\nmay = ["admin"]\ntables = ["*"]\n\n[end]\n'
TOKENS = f'"{OLD}" = {{ principal = "operator" }}\n"{ANN}" = {{ principal = "ann" }}  # of Ann\n\n'


def extended(text: str) -> str:
    return with_token(text, NEW, "operator", END)


@pytest.mark.parametrize(
    "header",
    ["[tokens]\n", "[tokens] # ours\n", "  [ tokens ]\t\n", '["tokens"]\n', "# who may come\n[tokens]\n# the first:\n"],
    ids=["plain", "with a comment", "with blanks", "quoted", "between comments"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_line_stands_below_the_header_and_earlier_ones_end(header: str, newline: str) -> None:
    text = (header + TOKENS + ROLE).replace("\n", newline)
    made = extended(text)
    ends = {each.digest: each.expires_ms for each in read_access_file(made).tokens}
    assert ends == {NEW: None, OLD: END.timestamp() * 1000, ANN: None}
    line, end = f'"{NEW}" = {{ principal = "operator" }}{newline}', ", expires = 2026-11-02T00:00:00Z"
    assert made.replace(line, "").replace(end, "") == text, "all else stays"


@pytest.mark.parametrize("text", [ROLE, f"# nobody\n[tokens]\n\n{ROLE}", "", "[tokens]"], ids=["no table", "empty", "", "no end"])
def test_a_file_without_tokens_gets_one_that_counts(text: str) -> None:
    assert [each.digest for each in read_access_file(extended(text)).tokens] == [NEW]


def test_tokens_with_a_table_each_get_a_further_one() -> None:
    made = extended(f'[tokens."{ANN}"]\nprincipal = "ann"\n\n{ROLE}')
    assert {each.digest for each in read_access_file(made).tokens} == {NEW, ANN}


@pytest.mark.parametrize(
    "text",
    [
        f'tokens = {{ "{ANN}" = {{ principal = "ann" }} }}\n{ROLE}',
        f'tokens."{ANN}" = {{ principal = "ann" }}\n{ROLE}',
        f'tokens."{ANN}".principal = "ann"\n{ROLE}',
        f'groups = {{ ours = ["ann"] }}\n\n{ROLE}',
        f"[tokens]\nnonsense\n{ROLE}",
    ],
    ids=["an inline table", "dotted", "dotted twice", "a key before all tables", "damaged"],
)
def test_a_file_that_takes_no_line_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(CommandError, match="the access file takes no further token") as refused:
        extended(text)
    assert (refused.value.kind, refused.value.code) == ("AccessFileError", ExitCode.OPERATOR)
    assert "below a line [tokens]" in refused.value.fix
