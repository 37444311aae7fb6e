"""`./task bench attacks`: what hostile callers cost a cluster, and its other clients."""

import bench.tables  # noqa: F401 - makes tests/support importable
