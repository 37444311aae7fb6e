"""How gRPC looks names up, in programs and in services."""

import os
from collections.abc import Mapping


def lookup_options(environment: Mapping[str, str] = os.environ) -> tuple[tuple[str, int], ...]:
    """Options for channels. A name whose server is gone is looked up again after 1 s. With the 30 s of gRPC a process that came
    back at another address would be out of reach for so long.

    In a pod of Kubernetes a lookup without an answer begins anew after 1 s: gRPC would repeat its questions from one port, for
    14 s. In a cluster all questions of a port go to the same one of its DNS servers, which may be gone with its machine; a new
    lookup has a new port, and may reach another server. Elsewhere the time is left as it is: there gRPC asks the machine's next
    server after 2 or 3 s.
    """
    again = ("grpc.dns_min_time_between_resolutions_ms", 1_000)
    return (again, ("grpc.dns_ares_query_timeout", 1_000)) if "KUBERNETES_SERVICE_HOST" in environment else (again,)
