"""Arrow's kernels without their stubs, which know no column of a type that is found at run time."""

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
