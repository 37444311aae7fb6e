"""`./task bench soak`: an hour of rows with a kill every minute; memory has to stay flat and every row has to be there once."""

import bench.tables  # noqa: F401 - puts tests/support on the path
