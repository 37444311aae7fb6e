"""The access file: what it says, and which line is to blame when it says something that is not understood."""

import contextlib

import pytest

from headgate_runtime.access.file import AccessFileError, TokenEntry, read_access_file
from headgate_runtime.access.rights import Right, Role

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def test_it_has_tokens_groups_and_roles() -> None:
    found = read_access_file(f'''# who may do what
[tokens]
"{A}" = {{ principal = "ann", expires = 2027-01-31T01:00:00+01:00 }}
"{B}" = {{ principal = "ann" }}

[groups]
ingest = ["ann", "ci"]
others = ["ci"]

[[roles]]
groups = ["ingest"]
may = ["write", "create"]
tables = ["raw_*", "a"]
channels = ["{{principal}}/"]

  [[ roles ]]  # the last
principals = ["ann"]
may = ["operate"]
tables = ["a"]
''')
    assert found.tokens == [TokenEntry(A, "ann", 1_801_353_600_000, 3), TokenEntry(B, "ann", None, 4)]
    assert found.policy.groups == {"ann": {"ingest"}, "ci": {"ingest", "others"}}
    assert found.policy.roles == [
        Role(
            10,
            frozenset({Right.WRITE, Right.CREATE}),
            ("raw_*", "a"),
            groups=frozenset({"ingest"}),
            channels=("{principal}/",),
        ),
        Role(16, frozenset({Right.OPERATE}), ("a",), frozenset({"ann"})),
    ]


@pytest.mark.parametrize("end", ["[end]", "[end]\n", " [ end ] # all of it\r\n\n # see the wiki \n\t"])
def test_a_file_that_ends_with_its_mark_is_whole_wherever_else_it_is_cut_it_is_not(end: str) -> None:
    whole = "# [end]\n" + ROLE + f'[tokens]\n"{A}" = {{ principal = "ann" }}\n\n{end}'
    assert read_access_file(whole).has_end
    for length in range(len(whole) - len(end) + end.index("]")):
        with contextlib.suppress(AccessFileError):
            cut = read_access_file(whole[:length])
            with pytest.raises(AccessFileError, match=r"before \[end\]"):
                cut.check_follows(read_access_file(whole))


def test_an_empty_file_allows_nothing() -> None:
    found = read_access_file("")
    assert (found.tokens, found.policy.roles, found.policy.groups) == ([], [], {})


ROLE = '[[roles]]\nprincipals = ["ann"]\nmay = ["write"]\ntables = ["a"]\n'
WRONG = {
    "no TOML": ("[tokens]\nx = = 1", r"line 2"),
    "lists that are too deep": ("x = " + 5000 * "[", r"recursion"),
    "a number that is too long": ("x = " + 5000 * "9", r"4300 digits"),
    "a token that is there twice": (f'[tokens]\n"{A}" = {{ principal = "a" }}\n"{A}" = {{ principal = "b" }}\n', r"line 3"),
    "an unknown part": ("[tokens]\n\n[colours]\n", r"unknown key 'colours'"),
    "a token itself instead of its digest": ('[tokens]\n\n"hg_secret" = { principal = "ann" }', r"line 3: want .*64 hex"),
    "a digest in capitals": (f'[tokens]\n"{A.upper()}" = {{ principal = "ann" }}', r"line 2: want"),
    "a token of nobody": (f'[tokens]\n"{A}" = {{ }}', r"line 2: the principal None"),
    "a token as a text": (f'[tokens]\n"{A}" = "ann"', r"line 2: .* not a table"),
    "an unknown key of a token": (f'[tokens]\n"{A}" = {{ principal = "ann", until = 1 }}', r"line 2: .*unknown key 'until'"),
    "the cluster's own name": (f'[tokens]\n"{A}" = {{ principal = "cluster" }}', r"line 2: .*the cluster's own"),
    "the name of nobody": (f'[tokens]\n"{A}" = {{ principal = "anonymous" }}', r"line 2: .*the cluster's own"),
    "a name with a space": (f'[tokens]\n"{A}" = {{ principal = "a b" }}', r"line 2: .*no name"),
    "an end as a text": (f'[tokens]\n"{A}" = {{ principal = "a", expires = "2027-01-31T00:00:00Z" }}', r"line 2: expires"),
    "an end without a zone": (f'[tokens]\n"{A}" = {{ principal = "a", expires = 2027-01-31T00:00:00 }}', r"line 2: expires"),
    "an end that is a day": (f'[tokens]\n"{A}" = {{ principal = "a", expires = 2027-01-31 }}', r"line 2: expires"),
    "a group that is no list": ('[groups]\n\ningest = "ann"', r"line 3: ingest wants a list"),
    "roles in one list": ('roles = [{ principals = ["ann"], may = ["read"], tables = ["a"] }]', r"line 1: begin each role"),
    "a right that there is not": (ROLE + ROLE.replace('"write"', '"wrote"'), r"line 5: may holds 'wrote'"),
    "no right": (ROLE.replace('["write"]', "[]"), r"line 1: the role wants may"),
    "no table": ("\n" + ROLE.replace('tables = ["a"]', ""), r"line 2: the role wants may"),
    "nobody": (ROLE.replace('principals = ["ann"]\n', ""), r"line 1: the role names nobody"),
    "the cluster as a principal": (ROLE.replace("ann", "cluster"), r"line 1: .*the cluster's own"),
    "a pattern with a slash": (ROLE.replace('["a"]', '["a/b"]'), r"line 1: tables holds 'a/b'"),
    "a pattern that is a set": (ROLE.replace('["a"]', '["[ab]"]'), r"line 1: tables holds"),
    "an unknown key of a role": (ROLE + 'table = "a"\n', r"line 1: a role has an unknown key 'table'"),
    "channels of a reader": (ROLE.replace("write", "read") + 'channels = ["a"]\n', r"line 1: channels .*goes with write"),
    "a prefix that is empty": (ROLE + 'channels = [""]\n', r"line 1: channels holds ''"),
    "no prefix": (ROLE + "channels = []\n", r"line 1: channels holds one prefix or more"),
    "an own prefix without its slash": (ROLE + 'channels = ["{principal}-"]\n', r"line 1: .*slash behind"),
    "a role behind the end": ("\n[end]\n" + ROLE, r"line 2: \[end\] is empty, and nothing"),
    "a key in the end": ("[end]\na = 1", r"line 1: \[end\] is empty, and nothing"),
    "an end that is no part": ("end = {}", r"line 1: \[end\] is empty, and nothing"),
    "rights as a text": (ROLE.replace('["write"]', '"write"'), r"line 1: may wants a list"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named_with_its_line(name: str) -> None:
    text, said = WRONG[name]
    with pytest.raises(AccessFileError, match=said):
        read_access_file(text)


def test_a_digest_that_a_comment_names_first_is_found_on_its_own_line() -> None:
    found = read_access_file(f'[tokens]\n# {A} is the new one\n"{A}" = {{ principal = "ann" }}\n')
    assert found.tokens[0].line == 3
