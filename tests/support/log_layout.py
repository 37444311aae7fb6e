"""A commit log in another place than Hudi's, with the slots of its services."""

from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.hudi.decisions.kinds import SERVICES

LOG_LAYOUT = LogFormat("meta", SERVICES)
