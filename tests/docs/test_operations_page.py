"""The files that docs/operations.md shows are read by what reads them."""

import re

import pytest

from headgate_cli.credentials.redis_user import coordinators_user
from headgate_runtime.access.file import read_access_file
from support.pages import fenced

PAGE = "docs/operations.md"


def whole(text: str) -> str:
    """With digests that are not cut short, each its own."""
    return re.sub(r"sha256:(\w+)…", lambda found: f"sha256:{found[1]:0<64}", text)


@pytest.mark.parametrize("text", fenced(PAGE, "toml"))
def test_a_part_of_an_access_file_is_understood(text: str) -> None:
    found = read_access_file(whole(text))
    assert found.tokens or found.policy.roles or found.quotas


def test_the_user_of_redis_has_the_rights_that_the_coordinators_user_gets() -> None:
    (shown,) = [block for block in fenced(PAGE) if block.startswith("ACL SETUSER")]
    rights = {word for word in shown.split() if word[0] in "+-~&"}
    assert rights == {
        "-@all",
        *(word for word in coordinators_user("secret").split() if word[0] in "+~"),
    }  # a user begins with -@all
