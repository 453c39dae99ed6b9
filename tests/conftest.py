from __future__ import annotations

from hypothesis import settings

pytest_plugins = ("pytester", "tests.fix_server", "tests.fix_database")

# How long an example takes says something about the machine alone.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
