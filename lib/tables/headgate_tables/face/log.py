"""What services know of the commit log: a few of its records, and how its times are written."""

from headgate_tables.commitlog.records import ChannelRecord, Channels, DataFile, DropRecord, GraceRecord, OwnerProcess
from headgate_tables.commitlog.times import format_time, parse_time

__all__ = ["ChannelRecord", "Channels", "DataFile", "DropRecord", "GraceRecord", "OwnerProcess", "format_time", "parse_time"]
