"""pyarrow's compute kernels, untyped.

Kernels accept arrays, chunked arrays, scalars and numpy arrays alike; pyarrow-stubs knows a part of that and rejects the rest.
Where a kernel's result leaves a function, the function's own annotation types it.
"""

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
