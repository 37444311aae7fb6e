"""Where the commit log of a Hudi table lies, and what its services write there."""

from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.hudi.decisions.kinds import SERVICES

LOG_LAYOUT = LogFormat(".hoodie", SERVICES)
"""Hudi leaves the log's folder alone (fact HF9)."""
