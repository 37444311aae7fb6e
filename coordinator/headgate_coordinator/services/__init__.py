"""The gRPC services: each call checked, put to a table or a stream, and answered."""
