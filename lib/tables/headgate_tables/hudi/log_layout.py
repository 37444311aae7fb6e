"""Where the commit log of a Hudi table lies."""

from headgate_tables.commitlog.layout import LogLayout

LOG_LAYOUT = LogLayout(".hoodie")
"""Hudi leaves the log's folder alone (fact HF9)."""
