"""Applies changes of a database as Debezium writes them (JSON, PostgreSQL) to a table, exactly once, also after a restart.

Beside a running `headgate dev`, one change a line:  kcat -C -b kafka -t shop.public.orders | python examples/change_feed.py
The state before the first change comes from `headgate load`; an operation other than c, u and d ends this program.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import headgate

COLUMNS = [("id", int), ("customer", str), ("total", float), ("lsn", int)]
OPERATIONS = {"c": "upsert", "u": "upsert", "d": "delete"}


def rows_of(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A row for each change: the operation, the columns, and the change's place in the database's log."""
    for line in lines:
        message = json.loads(line)
        change = message and message.get("payload", message)
        if not change:
            continue  # behind each delete comes a message without a value, for Kafka's own compaction
        if change["op"] not in OPERATIONS:
            sys.exit(f"operation {change['op']!r} at lsn {change['source']['lsn']} is no change of a row")
        row = change["after"] or change["before"]
        yield {"op": OPERATIONS[change["op"]], **row, "lsn": change["source"]["lsn"]}


def apply(lines: Iterable[str], orders: headgate.Table) -> None:
    """Raises HeadgateError."""
    with orders.channel("shop.public.orders") as channel:
        # Rows that the database inserted at once have one lsn. An offset stands for all rows up to it, so they go in one call.
        for lsn, rows in groupby(rows_of(lines), key=itemgetter("lsn")):
            if lsn > channel.offset:  # else it was sent before: a feed begins somewhere before the place where it broke off
                channel.write(list(rows), offset=lsn)


def main() -> None:
    with headgate.connect(os.environ.get("HEADGATE_CONNECT", "localhost:7070"), wait=60) as hg:
        # The lsn orders the changes of a key, so a change that comes twice or late never replaces a newer one.
        orders = hg.create_table("shop_orders", COLUMNS, key="id", ordering="lsn", exist_ok=True)
        apply(sys.stdin, orders)


if __name__ == "__main__":
    try:
        main()
    except headgate.HeadgateError as error:
        sys.exit(f"{error}")
