"""Log blocks of Avro rows: which blocks are, that every reader agrees, and that damage to them is found."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.face.altering import Alteration
from headgate_tables.hudi import change_writer, small_blocks
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.log.avro_rows import decode
from headgate_tables.hudi.log.block import Block, HeaderKey, read_blocks
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.place import place
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema
from headgate_tables.hudi.schema.meta_columns import sequence_numbers
from headgate_tables.hudi.small_blocks import AVRO_BYTES_A_COLUMN, AvroBlocks, BlockRows, avro_blocks_allowed
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from support.damage import changed, flip, wrong_paths
from support.events import EVENTS_SCHEMA, events
from support.readers import read_by_hudi_rs, read_by_us, without_meta
from support.refusals import refused
from support.same_rows import assert_same_rows
from support.slices import compact, operations_of
from support.splitting import split
from support.table_files import data_files, kind
from support.tables import SCHEMA, create, keys, notes, rows
from support.type_cases import CASES, column

FORMAT = "hoodie.logfile.data.block.format"
REFUSED = {name: case for name, case in CASES.items() if not avro_blocks_allowed(pa.schema([(name, case.stored)]))}
SPOT = pa.struct([("x", pa.int32()), ("name", pa.string())])
OTHERS = {
    "id": ["k0", "k1", "k3", "k4"],
    "ts": [1, 1, 1, 1],
    "spot": [{"x": 1, "name": "a"}, None, {"x": None, "name": ""}, {"x": -1, "name": None}],
}
"""Columns of ``table_of`` that are no case of a type."""


def blocks(path: Path) -> list[Block]:
    logs = [file for file in data_files(path) if kind(file) == "log"]
    return [block for file in logs for block in read_blocks(pa.py_buffer(file.read_bytes()), file.name)]


def kinds(path: Path) -> Counter[str]:
    return Counter(block.kind.name for block in blocks(path))


def block_of(size: int, note: str = "", group: int = 0) -> BlockRows:
    """So many rows, the first of which has a note."""
    made = rows(*((f"k{n:04}", n, "" if n else note) for n in range(size)))
    number = sequence_numbers("20260201000000000", size)
    return BlockRows(made, made["id"].chunk(0), number, "20260201000000000", "p", f"{group:08}-7c1f-4b5e-9a51-0c7f4a3e9d10-0")


@pytest.mark.parametrize(("form", "kind"), [(None, "AVRO_DATA"), ("parquet", "PARQUET_DATA"), ("avro", "AVRO_DATA")])
def test_small_log_blocks_are_avro_unless_the_table_says_otherwise(tmp_path: Path, form: str | None, kind: str) -> None:
    table = create(tmp_path)
    if form is not None:
        table.configure({FORMAT: form})
    table.delete(keys(("a", 1), ("b", 1), ("c", 1), ("d", 1)))
    table.upsert(rows(("a", 2, ""), ("b", 2, ""), ("c", 2, ""), ("d", 2, "")))
    assert kinds(tmp_path / "table") == {"DELETE": 2, kind: 2}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["avro", "auto"])
def test_the_setting_makes_rows_avro_and_every_reader_shows_the_same(tmp_path: Path, form: str) -> None:
    """With late rows and deletes; the rows of a commit are more than are encoded at a time, or few in each of 16 buckets."""
    tables = {}
    for name in (form, "parquet"):
        table = tables[name] = hudi.create_table(
            f"file://{tmp_path}/{name}", EVENTS_SCHEMA, record_key="event_id", ordering="version", buckets=16
        )
        table.configure({FORMAT: name})
        table.upsert(events(2000))
        table.upsert(events(5000, seed=1, start=500).slice(0, 5000 if form == "avro" else 160))
        table.delete(events(100, start=700, seed=2).select(["event_id", "version"]))
    made, usual = kinds(tmp_path / form), kinds(tmp_path / "parquet")
    assert made == {"AVRO_DATA": usual["PARQUET_DATA"], "DELETE": usual["DELETE"]}
    expected = read_by_us(tmp_path / "parquet")
    assert_same_rows(read_by_us(tmp_path / form), expected, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / form)), expected, "hudi-rs")
    assert tables[form].verify().ok
    for operation in list(operations_of(tables[form]))[:4]:
        compacted = compact(tables[form], operation)
        usual_one = compact(tables["parquet"], only(tables["parquet"], operation.partition, operation.file_id[:8]))
        assert (compacted.rows, compacted.inserts, compacted.updates) == (usual_one.rows, usual_one.inserts, usual_one.updates)


def only(table: hudi.Table, partition: str, bucket: str) -> Any:
    return next(each for each in operations_of(table) if each.partition == partition and each.file_id.startswith(bucket))


def test_rows_deletes_and_rows_again_in_one_file_keep_their_order(tmp_path: Path) -> None:
    table = create(tmp_path, ordering=None, buckets=1)
    table.configure({FORMAT: "avro"})
    table.upsert(rows(("a", 1, "old"), ("b", 1, "old")))
    with table.transaction() as transaction:
        transaction.upsert(rows(("a", 1, "new"), ("c", 1, "c")))
        transaction.delete(keys(("b", 1)))
        transaction.commit()
    table.upsert(rows(("b", 1, "back"), ("c", 1, "c2")))
    assert kinds(tmp_path / "table")["AVRO_DATA"] == 2
    assert notes(table) == {"a": "new", "b": "back", "c": "c2"}


def test_a_block_is_avro_up_to_the_bytes_at_which_parquet_packs_better() -> None:
    choice, most = AvroBlocks(SCHEMA), AVRO_BYTES_A_COLUMN * 9
    [base, _] = choice.encode([block_of(10), block_of(1)], "auto")
    assert base is not None
    room = most - base.rows.size
    for note, avro in (("x" * (room - 1), True), ("x" * room, False)):  # of 64 characters on, their number takes a byte more
        [found, _] = choice.encode([block_of(10, note), block_of(1)], "auto")
        assert (found is not None) is avro
        assert found is None or found.rows.size == most
        [forced, _] = choice.encode([block_of(10, note), block_of(1)], "avro")
        assert forced is not None
        assert forced.rows.size == most + (not avro)


def test_rows_that_cannot_fit_are_not_even_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    right = small_blocks.encode_rows
    monkeypatch.setattr(small_blocks, "encode_rows", lambda *of: (encoded.append(len(of[0][0])), right(*of))[1])
    assert AvroBlocks(SCHEMA).encode([block_of(24), block_of(25), block_of(3)], "auto")[1:] != [None, None]
    assert encoded == [27]


def test_a_file_that_is_too_large_for_avro_is_put_in_order_by_the_threads_that_encode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside small ones, whose blocks are encoded at once."""
    ordered: list[int] = []
    right, encode = change_writer._Batch.in_few_runs, AvroBlocks.encode
    before: list[list[int]] = []
    monkeypatch.setattr(change_writer._Batch, "in_few_runs", lambda batch: (ordered.append(len(batch.deletes)), right(batch))[1])
    monkeypatch.setattr(AvroBlocks, "encode", lambda *given: (before.append(sorted(ordered)), encode(*given))[1])
    table = create(tmp_path)
    assert table.definition is not None
    changes = [
        change
        for part, size in (("a", 400), ("b", 8), ("c", 8))
        for change in split(
            place(
                rows(*((f"k{n % (size // 2)}", n, "x") for n in range(size)), part=part),
                pa.array([n % 4 == 3 for n in range(size)]),
                table.definition,
            )
        )
    ]
    store = LocalStore(table.url.removeprefix("file://"), SystemIds())
    writer = ChangeWriter(store, table.definition, epoch=table.own(), process="5" * 32, ordinal=0)
    with table.transaction() as transaction:
        transaction.announce()
        transaction.add(writer.write(transaction.instant, changes, [1] * len(changes), block_format="auto"))
        transaction.commit()
    (small,) = before
    assert 0 < max(small) <= 8
    assert max(ordered) > 100
    assert kinds(tmp_path / "table").keys() == {"AVRO_DATA", "PARQUET_DATA", "DELETE"}
    assert table.scan(["id"]).to_table().num_rows == read_by_hudi_rs(tmp_path / "table").num_rows > 0


def test_one_small_block_alone_stays_parquet() -> None:
    """The pass over all blocks costs as much as a Parquet block of its own."""
    choice = AvroBlocks(SCHEMA)
    assert choice.encode([block_of(3), block_of(200)], "auto") == [None, None]
    assert [each is not None for each in choice.encode([block_of(3), block_of(200), block_of(4)], "auto")] == [True, False, True]
    assert choice.encode([block_of(3)], "avro") != [None]


def test_blocks_get_their_own_rows_wherever_passes_end() -> None:
    sizes = [4095, 1, 4096, 3, 5000, 2]
    many = [block_of(size, f"note {number}", number) for number, size in enumerate(sizes)]
    for given, made in zip(many, AvroBlocks(SCHEMA).encode(many, "avro"), strict=True):
        assert made is not None
        assert made.count == given.rows.num_rows
        content = pa.py_buffer(bytes([0, 0, 0, 3]) + made.count.to_bytes(4, "big") + made.rows.to_pybytes())
        schema = avro_schema(SCHEMA, "t", meta_columns=True)
        assert decode(content, schema, SCHEMA.names, "it").equals(given.rows)
        assert set(decode(content, schema, ["_hoodie_file_name"], "it")["_hoodie_file_name"].to_pylist()) == {given.file_name}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_with_a_type_that_hudi_rs_does_not_always_read_in_avro_stays_parquet(tmp_path: Path, name: str) -> None:
    made = table_of(tmp_path, {name: REFUSED[name].given})
    assert kinds(tmp_path / "t") == {"DELETE": 1, "PARQUET_DATA": 1}
    assert made.scan().to_table().num_rows == 4


@pytest.mark.parametrize("name", [name for name, case in REFUSED.items() if pat.is_struct(case.stored)])
def test_hudi_rs_reads_no_timestamp_in_a_struct_of_an_avro_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The reason why such tables stay Parquet. When this fails, hudi-rs has learnt it."""
    monkeypatch.setattr(small_blocks, "avro_blocks_allowed", lambda schema: True)
    table_of(tmp_path, {name: REFUSED[name].given})
    with pytest.raises(Exception, match="type"):
        read_by_hudi_rs(tmp_path / "t")


@pytest.mark.parametrize("name", [name for name, case in REFUSED.items() if not pat.is_struct(case.stored)])
def test_hudi_rs_reads_no_list_or_map_of_an_avro_block_that_lacks_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The reason why such tables stay Parquet: any table may get a column. When this fails, hudi-rs has learnt it."""
    monkeypatch.setattr(small_blocks, "avro_blocks_allowed", lambda schema: True)
    made = table_of(tmp_path, {name: REFUSED[name].given})
    made.alter(Alteration(add={"more": pa.int64()}))
    assert kinds(tmp_path / "t") == {"DELETE": 1, "AVRO_DATA": 1}
    assert made.scan().to_table().num_rows == 4
    with pytest.raises(Exception, match="type"):
        read_by_hudi_rs(tmp_path / "t")


def test_hudi_rs_reads_every_type_that_may_be_in_avro_blocks_also_when_the_table_has_got_a_column(tmp_path: Path) -> None:
    allowed = {name: case.given for name, case in CASES.items() if name not in REFUSED}
    made = table_of(tmp_path, {**allowed, "spot": SPOT})
    assert kinds(tmp_path / "t") == {"DELETE": 1, "AVRO_DATA": 1}
    expected = made.scan().to_table()
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), expected, "hudi-rs")
    stored = pa.schema(
        [("id", pa.string()), ("ts", pa.int64()), *((name, CASES[name].stored) for name in allowed), ("spot", SPOT)]
    )
    assert_same_rows(expected, of_types(stored), "our reader")
    made.alter(Alteration(add={"more": pa.int64()}))
    wider = expected.append_column("more", pa.nulls(4, pa.int64()))
    assert_same_rows(without_meta(read_by_hudi_rs(tmp_path / "t")), wider, "hudi-rs")


def table_of(path: Path, types: dict[str, pa.DataType]) -> hudi.Table:
    """With values at the edges in one log file, and no base file."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), *types.items()])
    table = hudi.create_table(str(path / "t"), schema, record_key="id", ordering="ts", buckets=1)
    table.configure({FORMAT: "avro"})
    table.delete(pa.table({"id": ["none"], "ts": [1]}))
    table.upsert(of_types(schema))
    return table


def of_types(schema: pa.Schema) -> pa.Table:
    columns = [
        pa.array(OTHERS[field.name], field.type) if field.name in OTHERS else column(field.name, field.type, [0, 1, 3, 4])
        for field in schema
    ]
    return pa.table(columns, schema=schema)


# --- damage, and blocks that are read together ---


@pytest.fixture
def layered(tmp_path: Path) -> hudi.Table:
    """One slice: a log of Parquet, four of Avro, the third under a schema with a column more."""
    table = create(tmp_path, buckets=1)
    table.delete(keys(("x", 1)))
    table.upsert(rows(("a", 1, "parquet"), ("b", 1, "parquet")))
    table.configure({FORMAT: "avro"})
    table.upsert(rows(("a", 2, "first"), ("c", 2, "first")))
    table.upsert(rows(("b", 3, "second"), ("c", 3, "second")))
    table.alter(Alteration(add={"more": pa.int64()}))
    table.upsert(rows(("d", 4, "third")).append_column("more", pa.array([7])))
    table.upsert(rows(("e", 5, "fourth"), ("a", 1, "late")).append_column("more", pa.array([8, 9])))
    return table


WANTED = {"a": "first", "b": "second", "c": "second", "d": "third", "e": "fourth"}


def test_blocks_of_two_schemas_in_one_slice_are_read_with_their_own(layered: hudi.Table) -> None:
    assert {row["id"]: (row["note"], row["more"]) for row in layered.scan().to_table().to_pylist()} == {
        key: (note, {"d": 7, "e": 8}.get(key)) for key, note in WANTED.items()
    }
    [operation] = operations_of(layered)
    assert compact(layered, operation).rows == len(WANTED)


def logs_in_order(table: hudi.Table) -> list[Path]:
    folder = Path(table.url.removeprefix("file://"))
    [group] = table.file_groups()
    [part] = group.slices()
    return [folder / part.path(log.name) for log in part.logs]


@pytest.mark.slow
def test_a_flipped_bit_anywhere_in_avro_rows_is_found_and_the_file_named(layered: hudi.Table) -> None:
    file = logs_in_order(layered)[3]
    content = file.read_bytes()
    [block] = read_blocks(pa.py_buffer(content), file.name)
    assert block.kind.name == "AVRO_DATA"
    start = content.index(block.content.to_pybytes())
    name = file.name
    for at in range(start, start + block.content.size):
        with changed(file, flip(content, at, at % 8)):
            with refused(CorruptFileError, f"p/{name}", "Restore the file from a copy"):
                hudi.open_table(layered.url).scan().to_table()
            if at % 40 == 0:
                assert wrong_paths(layered) == [f"p/{name}"]
                with refused(CorruptFileError, f"p/{name}", "Restore the file from a copy"):
                    compact(layered, next(operations_of(layered)))
    assert {row["id"]: row["note"] for row in layered.scan().to_table().to_pylist()} == WANTED


@pytest.mark.slow
def test_a_flipped_bit_anywhere_in_a_file_of_avro_rows_is_found_or_harmless(layered: hudi.Table) -> None:
    """In headers and framing, too: a name or type that the schema spells otherwise would show other columns."""
    file = logs_in_order(layered)[3]
    content, wrong = file.read_bytes(), []

    def read(data: bytes) -> list[tuple[str, pa.Table]]:
        found = read_log_file(pa.py_buffer(data), file.name, lambda _: True, strict=True)
        return [(block.instant, block.read()) if isinstance(block, RowsBlock) else ("", None) for block in found]

    [(instant, right)] = read(content)
    for at in range(len(content)):
        for bit in range(8):
            try:
                found = read(flip(content, at, bit))
            except (CorruptFileError, UnsupportedTableError):
                continue
            # Files of ours hold the instant of their name (test_damage).
            if [each for each in found if each[0] == instant] and not found[0][1].equals(right):
                wrong.append((at, bit))
    assert not wrong


def test_avro_blocks_have_the_headers_of_parquet_blocks_and_a_checksum(layered: hudi.Table) -> None:
    parquet, first, second = (blocks_in(file)[0] for file in logs_in_order(layered)[1:4])
    for block in (first, second):
        assert block.headers.keys() - parquet.headers.keys() == {HeaderKey.BLOCK_IDENTIFIER}
        assert block.headers[HeaderKey.SCHEMA] == parquet.headers[HeaderKey.SCHEMA]
        assert block.headers[HeaderKey.BLOCK_IDENTIFIER].startswith("crc32:")


def blocks_in(file: Path) -> list[Block]:
    return list(read_blocks(pa.py_buffer(file.read_bytes()), file.name))
