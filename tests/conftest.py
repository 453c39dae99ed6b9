from __future__ import annotations

pytest_plugins = ("pytester", "tests.fix_server", "tests.fix_database")
