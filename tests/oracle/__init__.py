"""An independent brute-force checker and adversary, written to be read as the definition.

It shares no code with the publisher: plain dictionaries, sets and fractions, and it imports
nothing from ``pg_mdistinct``.
"""
