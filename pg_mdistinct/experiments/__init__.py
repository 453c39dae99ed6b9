"""Experiments of the paper and about it, on the core alone: no database is needed."""
