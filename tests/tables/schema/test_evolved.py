"""A schema that another program changed: taken over where older rows can still be read, refused where they cannot."""

import pyarrow as pa
import pytest

from headgate_tables.errors import UnsupportedTableError
from headgate_tables.hudi.schema.evolved import check_stored, evolved, shown

MS, US = pa.timestamp("ms", tz="UTC"), pa.timestamp("us", tz="UTC")
ONE, TWO = pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.string())])


def one(kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("x", kind, nullable=nullable)])


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (MS, US, MS),
        (pa.binary(3), pa.binary(), pa.binary(3)),
        (pa.string(), pa.string(), pa.string()),
        (ONE, TWO, TWO),
        (TWO, ONE, TWO),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
    ],
    ids=str,
)
def test_the_type_that_holds_the_rows_of_both_is_taken(ours: pa.DataType, theirs: pa.DataType, wanted: pa.DataType) -> None:
    assert evolved(one(ours), one(theirs)) == one(wanted)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(pa.string(), pa.int32()), (pa.int32(), pa.bool_()), (ONE, pa.string()), (US, pa.date32())], ids=str
)
def test_a_type_that_older_rows_cannot_have_is_refused(ours: pa.DataType, theirs: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match="in the column 'x', which was"):
        evolved(one(ours), one(theirs))


def test_a_column_is_nullable_if_either_says_so() -> None:
    for ours, theirs in ((True, True), (True, False), (False, True), (False, False)):
        found = evolved(one(pa.int32(), nullable=ours), one(pa.int32(), nullable=theirs))
        assert found.field("x").nullable is (ours or theirs)


def test_columns_stand_where_the_other_program_put_them() -> None:
    ours = pa.schema([("a", pa.int32()), ("b", pa.string())])
    theirs = pa.schema([("n", pa.string()), ("b", pa.string()), ("a", pa.int32())])
    assert evolved(ours, theirs) == theirs
    assert evolved(ours, pa.schema([])) == ours, "a commit without a schema says nothing"


def test_before_it_is_adopted_reads_show_our_columns_and_then_those_that_were_added() -> None:
    ours = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", MS), pa.field("d", ONE, nullable=False)])
    theirs = pa.schema([pa.field("n", pa.bool_(), nullable=False), ("d", TWO), ("c", US), ("a", pa.int64()), ("b", pa.int32())])
    wanted = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", MS), ("d", TWO), ("n", pa.bool_())])
    assert shown(ours, theirs) == wanted
    assert shown(ours, ours) == ours
    assert shown(ours, pa.schema([("n", pa.bool_())])) == ours.append(pa.field("n", pa.bool_())), "a dropped column stays ours"


def test_a_new_column_may_be_null_in_older_rows() -> None:
    theirs = one(pa.int32()).append(pa.field("n", pa.int32(), nullable=False))
    with pytest.raises(UnsupportedTableError, match="new column 'n'"):
        evolved(one(pa.int32()), theirs)
    with pytest.raises(UnsupportedTableError, match="no longer has the column 'x'"):
        evolved(one(pa.int32()), pa.schema([("n", pa.int32())]))


@pytest.mark.parametrize("kind", [pa.time32("ms"), pa.timestamp("us"), pa.null()], ids=str)
def test_columns_that_would_be_stored_otherwise_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match="'x'"):
        check_stored(one(kind))


def test_the_column_that_marks_deletes_is_known() -> None:
    check_stored(pa.schema([("x", pa.int32()), ("_hoodie_is_deleted", pa.bool_())]))
    with pytest.raises(UnsupportedTableError, match="_hoodie_is_deleted"):
        check_stored(pa.schema([("_hoodie_is_deleted", pa.int32())]))
