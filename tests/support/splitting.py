"""Placed rows by bucket, all of them, in the order of their arrival: what nobody has sifted."""

from headgate_tables.face.writing import Changes
from headgate_tables.hudi.place import Placed


def split(placed: Placed) -> list[Changes]:
    """One ``Changes`` per group, in the order of ``placed.groups``."""
    found: list[Changes] = []
    for number, (partition, bucket) in enumerate(placed.groups):
        mine = (placed.group == number).nonzero()[0]
        found.append(Changes(partition, bucket, placed.rows.take(mine), placed.keys.take(mine), placed.deletes.take(mine)))
    return found
