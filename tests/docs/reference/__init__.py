"""Writes the pages of docs/reference/ from comments in the database, help and docstrings."""
