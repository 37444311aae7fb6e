"""Serves `external.metrics.k8s.io` from services' own /metrics, where neither prometheus-adapter nor KEDA is: for tests alone."""
