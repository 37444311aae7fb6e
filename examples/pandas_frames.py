"""A pandas frame becomes a table, is read back, corrected, and compared with what it was before.

Beside a running `headgate dev`:  python examples/pandas_frames.py
"""

import os
import sys

import pandas as pd

import headgate

MEASURED = pd.DataFrame(
    {
        "id": ["EWR-01", "JFK-01", "LGA-01", "JFK-02"],
        "at": pd.to_datetime(["2013-01-01T01:00Z", "2013-01-01T01:00Z", "2013-01-01T01:00Z", "2013-01-01T02:00Z"]).as_unit("us"),
        "celsius": [3.9, 39.2, 4.1, 3.7],
    }
)


def main() -> None:
    with headgate.connect(os.environ.get("HEADGATE_CONNECT", "localhost:7070")) as hg:
        weather = hg.create_table("weather", MEASURED, key="id", exist_ok=True)
        with weather.channel("pandas-example") as channel:
            channel.upsert(MEASURED)
            channel.flush("queryable")
        before = weather.scan()  # fixed now: later commits do not change it

        hot = weather.scan(where="celsius > 30").to_pandas()
        with weather.channel("pandas-example") as channel:  # one reading was in Fahrenheit
            channel.upsert(hot.assign(celsius=(hot["celsius"] - 32) / 1.8))

        both = before.to_pandas().merge(weather.scan().to_pandas(), on=["id", "at"], suffixes=("_before", ""))
        print(both.sort_values("id").round(1).to_string(index=False))


if __name__ == "__main__":
    try:
        main()
    except headgate.HeadgateError as error:
        sys.exit(f"{error}")
