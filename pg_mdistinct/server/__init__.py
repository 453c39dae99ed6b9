"""What runs inside PL/Python: reads a snapshot, calls the core, writes the release."""
