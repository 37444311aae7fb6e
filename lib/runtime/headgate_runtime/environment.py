"""The environment of a service's process: what its libraries read only when it starts."""

from typing import Final

ENVIRONMENT: Final = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483648",
    "MALLOC_TOP_PAD_": "67108864",
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
}
"""By default glibc maps and unmaps memory for each large message; with the first three variables it keeps the memory. A gRPC
server with messages of 1 to 4 MiB gets 2.5 times the throughput for a third of the CPU (measured). The price: memory is
returned to the system only when the process has been calm for some seconds (``headgate_runtime.unused_memory``).

The next two make one heap for all threads. With an arena for each thread, and Arrow's own allocator beside glibc's, each would
keep free memory that the others could use. A writer at full speed takes 440 MiB instead of 800, and routes up to 40 % more rows
per CPU second.

The last one: NumPy comes with a library of linear algebra, which nobody asks for anything here, and which starts a thread for
each core."""
