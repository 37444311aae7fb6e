"""A commit log of no format at all."""

from headgate_tables.commitlog.layout import LogLayout

LOG_LAYOUT = LogLayout("meta")
