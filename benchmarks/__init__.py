"""Benchmarks: what takes time is a ratio of times measured in one run, minimum of several."""
