"""Connections: replicas, retries, time limits, concurrency, telemetry and the log of recalls."""
