"""JSON as programs write it."""

import gzip
import json

from support.real_files.case import RealFile, sql, text

_READ = sql("select * from read_json(FILE)")
_NESTED = (
    '{"id": 1, "who": {"name": "Anna", "tags": ["a", "b"]}, "n": 1.5}\n'
    '{"id": 2, "who": {"name": null, "tags": []}, "n": 2}\n'
    '{"id": 3, "who": null, "n": null}\n'
)
_DEBEZIUM = "".join(
    json.dumps(row) + "\n"
    for row in (
        {"before": None, "after": {"id": 1, "name": "Anna"}, "op": "c", "ts_ms": 1767322800000},
        {"before": None, "after": {"id": 2, "name": "Ben"}, "op": "r", "ts_ms": 1767322800001},
        {"before": {"id": 1, "name": "Anna"}, "after": {"id": 1, "name": "Ann"}, "op": "u", "ts_ms": 1767322800002},
        {"before": {"id": 2, "name": "Ben"}, "after": None, "op": "d", "ts_ms": 1767322800003},
    )
)
_CHANGES = (
    "select coalesce(after.id, before.id) as id, after.name as name, ts_ms, "
    "case op when 'd' then 'delete' else 'upsert' end as op from input"
)
_POINT = {"type": "Feature", "properties": {"id": 1, "name": "Köln"}, "geometry": {"type": "Point", "coordinates": [6.95, 50.94]}}
_LINE = {
    "type": "Feature",
    "properties": {"id": 2, "name": "Rhein"},
    "geometry": {"type": "LineString", "coordinates": [[6.9, 50.9]]},
}
_FEATURES = json.dumps(
    {"type": "FeatureCollection", "features": [_POINT, _POINT | {"properties": {"id": 2, "name": "Bonn"}}]}, indent=2
)
_FLAT = "select f.properties.id as id, f.properties.name as name, f.geometry.coordinates as place from (select unnest(features) as f from {})"  # noqa: E501
_GEOJSON_LINES = "".join(json.dumps({"id": at, **each}) + "\n" for at, each in enumerate((_POINT, _LINE)))
_MONGO = '{"_id": {"$oid": "507f1f77bcf86cd799439011"}, "n": 1}\n'
_FLAT_MONGO = """select _id."$oid" as id, n from {}"""

JSONS = {
    "lines with objects and lists": RealFile("nested.jsonl", text(_NESTED), (), _READ),
    "lines, gzip": RealFile("nested.ndjson.gz", text(gzip.compress(_NESTED.encode())), (), _READ),
    "an array over many lines": RealFile(
        "array.json", text(json.dumps([{"id": 1, "name": "Zoë"}, {"id": 2, "name": "a\nb"}], indent=2)), (), _READ
    ),
    "an array in one line": RealFile("array.json", text('[{"id":1,"n":2.5},{"id":2,"n":3}]'), (), _READ),
    "pandas, records": RealFile("frame.json", text('[{"id":1,"day":"2026-01-02"},{"id":2,"day":null}]'), (), _READ),
    "a byte order mark": RealFile(
        "mark.json", text('\ufeff[{"id": 1}]'), (), lambda path: json.loads(path.read_text(encoding="utf-8-sig"))
    ),
    "fields that come and go": RealFile(
        "gaps.jsonl", text('{"id": 1, "a": 1}\n{"id": 2, "b": "x"}\n{"id": 3, "a": 2.5}\n'), (), _READ
    ),
    "Debezium's changes": RealFile(
        "changes.jsonl",
        text(_DEBEZIUM),
        ("--sql", _CHANGES, "--operation-column", "op"),
        sql("select after.id as id, after.name as name, ts_ms from read_json(FILE) where ts_ms = 1767322800002"),
    ),
    "GeoJSON": RealFile("places.json", text(_FEATURES), ("--sql", _FLAT.format("input")), sql(_FLAT.format("read_json(FILE)"))),
    "GeoJSON lines of several kinds": RealFile("places.jsonl", text(_GEOJSON_LINES), error="--cast 'geometry=string'"),
    "GeoJSON lines of several kinds, as texts": RealFile(
        "places.jsonl",
        text(_GEOJSON_LINES),
        ("--cast", "geometry=string"),
        lambda path: [row | {"geometry": json.dumps(row["geometry"])} for row in map(json.loads, path.read_text().splitlines())],
    ),
    "numbers and texts": RealFile("mixed.jsonl", text('{"id": 1, "n": 5}\n{"id": 2, "n": "six"}\n'), error="--cast 'n=string'"),
    "numbers and texts, as texts": RealFile(
        "mixed.jsonl",
        text('{"id": 1, "n": 5}\n{"id": 2, "n": "six"}\n'),
        ("--cast", "n=string"),
        sql("select * from read_json(FILE, columns={'id': 'BIGINT', 'n': 'VARCHAR'})"),
    ),
    "mongoexport": RealFile(
        "mongo.json", text(_MONGO), ("--sql", _FLAT_MONGO.format("input")), sql(_FLAT_MONGO.format("read_json(FILE)"))
    ),
    "times in UTC": RealFile(
        "events.jsonl",
        text('{"id": 1, "at": "2026-01-02T03:04:05Z"}\n'),
        (),
        sql("select id, \"at\"::timestamptz as \"at\" from read_json(FILE, columns={'id': 'BIGINT', 'at': 'VARCHAR'})"),
    ),
    "times without a zone": RealFile("events.jsonl", text('{"id": 1, "at": "2026-01-02T03:04:05"}\n'), error="--timezone"),
    "letters as escapes": RealFile("escapes.jsonl", text('{"id": 1, "t": "\\u00fc \\ud83d\\ude00 \\n"}\n'), (), _READ),
    "a number that no float has": RealFile(
        "large.jsonl", text('{"id": 1, "n": 1.5}\n{"id": 2, "n": 9007199254740993}\n'), error="--cast 'n="
    ),
    "names with dots": RealFile("dots.jsonl", text('{"id": 1, "a.b": 2}\n'), error="--rename 'a.b=a_b'"),
    "a line that is cut off": RealFile("cut.jsonl", text('{"id": 1}\n{"id": '), error="Correct"),
    "a single object": RealFile("one.json", text('{\n  "id": 1,\n  "n": 2\n}\n'), (), _READ),
}
