"""What the tests of the clients share: a ward with its model."""

from __future__ import annotations

from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

MODEL: dict[str, list[str] | dict[str, float]] = {
    "Dyspepsia": ["Dyspepsia", "Gastritis"],
    "Gastritis": {"Gastritis": 0.75, "Dyspepsia": 0.25},
    "Flu": ["Flu", "Pneumonia"],
    "Pneumonia": ["Pneumonia", "Flu"],
}
COLUMNS = ("id", ["age", "Town"], "disease", 2)
"""The arguments that `register` takes after the source."""


def make_patients(db: Connection) -> str:
    """Makes a table whose names need quotes, and returns its name as SQL takes it."""
    db.execute(
        """
        CREATE SCHEMA ward;
        CREATE TABLE ward."Patients" (id int PRIMARY KEY, age int, "Town" text, disease text);
        INSERT INTO ward."Patients"
        SELECT i, 20 + i, CASE i % 3 WHEN 0 THEN 'Ayr' ELSE 'Bath' END,
               (ARRAY['Dyspepsia', 'Gastritis', 'Flu', 'Pneumonia'])[1 + i % 4]
        FROM generate_series(1, 12) AS i
        """
    )
    return 'ward."Patients"'
