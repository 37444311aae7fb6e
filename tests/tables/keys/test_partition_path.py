import datetime as dt
import posixpath
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_tables.errors import (
    CorruptFileError,
    FixCall,
    OptionError,
    PartitionValueError,
    SchemaError,
    UnsupportedTypeError,
)
from headgate_tables.hudi.keys.partition_path import PartitionSpec, parse_partition_path, partition_paths

BY_P = PartitionSpec(("p",))


def folder(value: object, spec: PartitionSpec = BY_P, of: pa.DataType | None = None) -> str:
    codes, paths, values = partition_paths(pa.table({"p": pa.array([value], of)}), spec)
    assert (codes.tolist(), values) == ([0], [(value,)])
    return paths[0]


# Each as Spark with Hudi 1.2.0 wrote it into a URL-encoded table, and both Spark and hudi-rs read back.
FOLDERS = [
    ("default", "default"),
    (".a", ".a"),
    ("_a", "_a"),
    ("_temporary", "_temporary"),
    ("a b", "a b"),
    (" lead", " lead"),
    ("trail ", "trail "),
    ("a+b", "a+b"),
    ("\u00e9", "\u00e9"),
    ("e\u0301", "e\u0301"),
    ("日本", "日本"),
    ("😀", "😀"),
    ("a\x01b", "a%01b"),
    ("null", "null"),
    ("2024/01/02", "2024%2F01%2F02"),
    ("%2F", "%252F"),
    ("a=b", "a%3Db"),
    ("...", "..."),
    ("a..b", "a..b"),
    ("<|>$&;`~!@()", "<|>$&;`~!@()"),
    ("\x85\u2028", "\x85\u2028"),
    ("\x7f", "%7F"),
    ("007", "007"),
    ("\\x", "%5Cx"),
    ("{}[]^", "%7B}%5B%5D%5E"),
    ("x" * 255, "x" * 255),
    ("tail.", "tail."),
    ("\"#'*:?", "%22%23%27%2A%3A%3F"),
]


@pytest.mark.parametrize(("value", "expected"), FOLDERS)
def test_a_value_makes_the_folder_that_spark_makes(value: str, expected: str) -> None:
    assert folder(value) == expected
    if len(value) < 254:
        assert folder(value, PartitionSpec(("p",), hive_style=True)) == f"p={expected}"
    assert parse_partition_path(expected, BY_P, [pa.string()]) == {"p": value}


@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        (-128, pa.int8(), "-128"),
        (2**63 - 1, pa.int64(), "9223372036854775807"),
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (dt.date(2026, 11, 20), pa.date32(), "2026-11-20"),
        ("x", pa.large_string(), "x"),
    ],
)
def test_a_value_of_another_type_makes_its_text_and_comes_back_typed(value: object, of: pa.DataType, expected: str) -> None:
    assert folder(value, of=of) == expected
    back = parse_partition_path(expected, BY_P, [of])["p"]
    assert back == value
    assert type(back) is type(value)


def test_rows_are_coded_by_partition() -> None:
    table = pa.table({"v": pa.array([1, 2, 1, 2, 1]), "dt": pa.array(["b", "a", "b", "b", "b"])})
    codes, paths, values = partition_paths(table, PartitionSpec(("dt", "v"), hive_style=True))
    assert codes.dtype == np.int32
    assert [paths[code] for code in codes] == ["dt=b/v=1", "dt=a/v=2", "dt=b/v=1", "dt=b/v=2", "dt=b/v=1"]
    assert [values[code] for code in codes] == [("b", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 1)]
    assert len(paths) == len(values) == 3


def test_a_table_without_partition_fields_lies_in_the_root() -> None:
    codes, paths, values = partition_paths(pa.table({"a": [1, 2]}), PartitionSpec())
    assert (codes.tolist(), paths, values) == ([0, 0], [""], [()])
    assert parse_partition_path("", PartitionSpec(), []) == {}


@pytest.mark.parametrize("fields", [(), ("p",), ("p", "q")])
def test_no_rows_make_no_partitions(fields: tuple[str, ...]) -> None:
    table = pa.table({"p": pa.array([], pa.string()), "q": pa.array([], pa.string()).dictionary_encode()})
    codes, paths, values = partition_paths(table, PartitionSpec(fields))
    assert (codes.tolist(), paths, values) == ([], [], [])


def test_dictionaries_chunks_and_slices_give_the_same_as_plain_columns() -> None:
    plain = pa.array(["c", "a", "b", "a", "c", "b", "b"])
    chunked = pa.chunked_array([plain[:3].dictionary_encode(), plain[3:].dictionary_encode()])
    repeating = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, 3, 2, 1, 3, 3], pa.int8()), pa.array(["a", "c", "a", "b", "..", None])
    )
    for column in (chunked, repeating, pa.concat_arrays([pa.array(["zz"]), plain]).dictionary_encode()[1:]):
        codes, paths, values = partition_paths(pa.table({"p": column}), BY_P)
        assert [paths[code] for code in codes] == plain.to_pylist()
        assert sorted(values) == [("a",), ("b",), ("c",)]


def test_many_partitions_of_two_fields_are_coded_without_a_table_of_all_pairs() -> None:
    numbers = pa.array(range(5000))
    codes, paths, _ = partition_paths(pa.table({"a": numbers, "b": numbers}), PartitionSpec(("a", "b")))
    assert [paths[code] for code in codes] == [f"{n}/{n}" for n in range(5000)]


anything = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("./=%_:\\{}\0\"'#*?[]^\x7f"), max_size=12)
hard = anything | st.sampled_from(["..", ".", "__HIVE_DEFAULT_PARTITION__", ".hoodie", "%2E%2E", "../x", "p=1", "é", "e\u0301"])
specs = st.builds(PartitionSpec, st.just(("p", "q")), st.booleans(), st.booleans())


@pytest.mark.slow
@settings(deadline=None, max_examples=500)
@given(st.lists(st.tuples(hard, hard), min_size=1, max_size=4), specs)
def test_any_values_that_are_taken_have_folders_of_their_own_inside_the_table_and_come_back(rows, spec: PartitionSpec) -> None:
    table = pa.table({"p": [p for p, _ in rows], "q": [q for _, q in rows]})
    try:
        codes, paths, values = partition_paths(table, spec)
    except PartitionValueError:
        return
    assert [values[code] for code in codes] == rows
    assert len(set(paths)) == len(paths) == len(set(rows))
    for path, (p, q) in zip(paths, values, strict=True):
        assert posixpath.normpath(f"/root/{path}") == f"/root/{path}"
        assert path.count("/") == 1
        assert not any(folder.startswith(".hoodie") or len(folder.encode()) > 255 for folder in path.split("/"))
        assert parse_partition_path(path, spec, [pa.string(), pa.string()]) == {"p": p, "q": q}


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20))
def test_a_url_encoded_table_takes_any_text(value: str) -> None:
    assert parse_partition_path(folder(f"v{value}"), BY_P, [pa.string()]) == {"p": f"v{value}"}


UNSAFE = [
    ("", "cannot be a folder"),
    (".", "cannot be a folder"),
    ("..", "cannot be a folder"),
    ("__HIVE_DEFAULT_PARTITION__", "cannot be a folder"),
    ("a\0b", "holds NUL"),
    ("x" * 256, "makes a folder name of 256 bytes"),
    ("é" * 128, "makes a folder name of 256 bytes"),
    ("/" * 86, "makes a folder name of 258 bytes"),
    (".hoodie", "begins like Hudi's own files"),
    (".hoodie_partition_metadata", "begins like Hudi's own files"),
]


@pytest.mark.parametrize(("value", "why"), UNSAFE)
def test_a_value_that_cannot_be_a_folder_is_refused_with_its_column(value: str, why: str) -> None:
    with pytest.raises(PartitionValueError, match=f"of partition column 'p' {why}.* Change the value or leave its rows out"):
        folder(value)


def test_a_refused_value_is_shown_shortened_and_escaped() -> None:
    with pytest.raises(PartitionValueError, match=r"the value 'a\\x00b' of partition column"):
        folder("a\0b")
    with pytest.raises(PartitionValueError, match=r"the value 'x{40}'\.\.\. of 300 characters of partition column"):
        folder("x" * 300)


def test_the_hive_style_name_counts_and_protects() -> None:
    hive = PartitionSpec(("p",), hive_style=True)
    assert folder("x" * 253, hive) == "p=" + "x" * 253
    with pytest.raises(PartitionValueError, match="folder name of 256 bytes"):
        folder("x" * 254, hive)
    assert folder(".hoodie", hive) == "p=.hoodie"


@pytest.mark.parametrize("value", ["a/b", "a=b", "a%41", "10:30", "a\\b", "a\x01b", "\x7f"])
def test_without_url_encoding_text_that_spark_would_read_otherwise_is_refused(value: str) -> None:
    with pytest.raises(PartitionValueError, match="which only a URL-encoded table can keep"):
        folder(value, PartitionSpec(("p",), url_encode=False))


@pytest.mark.parametrize("value", ["a*b", "[x]", "{b}", "a?b", "#x", '"q"', "a'b", "a^b", "a b"])
def test_without_url_encoding_other_text_stays_as_it_is(value: str) -> None:
    spec = PartitionSpec(("p",), url_encode=False)
    assert folder(value, spec) == value
    assert parse_partition_path(value, spec, [pa.string()]) == {"p": value}


def test_null_is_refused_with_its_first_row_and_count() -> None:
    plain = pa.array(["a", None, "b", None])
    in_dictionary = pa.DictionaryArray.from_arrays([0, 1, 0, 1], pa.array(["a", None]))
    for column in (plain, plain.dictionary_encode(), in_dictionary):
        with pytest.raises(PartitionValueError, match="column 'p' is null in 2 of 4 rows, first in row 1"):
            partition_paths(pa.table({"p": column}), BY_P)


@pytest.mark.parametrize("of", [pa.float64(), pa.timestamp("us"), pa.decimal128(5, 2), pa.binary(), pa.uint8()], ids=str)
def test_a_type_whose_folder_is_not_certain_is_refused(of: pa.DataType) -> None:
    value = {"double": 1.5, "decimal128(5, 2)": Decimal("1.5"), "binary": b"a"}.get(str(of), 1)
    with pytest.raises(UnsupportedTypeError, match="cannot be the type of partition column 'p'"):
        folder(value, of=of)
    with pytest.raises(UnsupportedTypeError, match="not a type for partition column 'p'"):
        parse_partition_path("1", BY_P, [of])


def test_a_missing_column_and_a_date_without_a_common_text_are_refused() -> None:
    with pytest.raises(SchemaError, match="partition column 'p' is not in the data, which has a"):
        partition_paths(pa.table({"a": [1]}), BY_P)
    with pytest.raises(FixCall, match="partition column 'p' holds a date outside"):
        partition_paths(pa.table({"p": pa.array([2932897], pa.int32()).cast(pa.date32())}), BY_P)


def test_a_folder_of_null_values_is_none() -> None:
    spec = PartitionSpec(("p", "q"), hive_style=True)
    path = "p=__HIVE_DEFAULT_PARTITION__/q=7"
    assert parse_partition_path(path, spec, [pa.string(), pa.int32()]) == {"p": None, "q": 7}


def test_an_escape_is_one_character_and_anything_else_stays() -> None:
    for path, value in [("%E9", "é"), ("%2f", "/"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%2541", "%41")]:
        assert parse_partition_path(path, BY_P, [pa.string()]) == {"p": value}


def test_a_single_field_takes_all_folders_of_a_foreign_path() -> None:
    spec = PartitionSpec(("p",), url_encode=False)
    assert parse_partition_path("2026/11/20", spec, [pa.string()]) == {"p": "2026/11/20"}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("p=1", "has 1 folders for 2 partition columns"),
        ("p=1/q=2/r=3", "has 3 folders for 2 partition columns"),
        ("", "has 0 folders for 2 partition columns"),
        ("q=1/p=2", "has 'q=1' where 'p'= is expected"),
        ("p=1/q=x", "has 'x' for column 'q' of type int32"),
    ],
)
def test_a_folder_that_is_none_of_the_tables_is_refused_with_its_path(path: str, why: str) -> None:
    spec = PartitionSpec(("p", "q"), hive_style=True)
    with pytest.raises(CorruptFileError, match=f"the folder '{path}' is not a partition of this table: it {why}"):
        parse_partition_path(path, spec, [pa.string(), pa.dictionary(pa.int8(), pa.int32())])


@pytest.mark.parametrize("fields", [("a", "a"), ("",), ("a/b",), ("a=b",), ("a,b",), ("a:b",), (".hoodie",), ("a\0",)])
def test_fields_that_a_folder_cannot_name_are_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="partition field"):
        PartitionSpec(fields)
