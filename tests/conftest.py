from __future__ import annotations

pytest_plugins = ("tests.fix_server", "tests.fix_database")
