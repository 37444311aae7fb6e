"""Keeps gRPC's own lines off stderr: errors say what is wrong. Comes before the first import of grpc.

A program that sets GRPC_VERBOSITY, or that has imported grpc before, keeps its choice.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
