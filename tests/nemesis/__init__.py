"""`./task nemesis`: a cluster that takes rows while every kind of fault comes over it; see `--help`."""
