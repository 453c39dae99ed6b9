"""The hospital of the paper: two snapshots, two 2-diverse tables, and how diseases change."""

from __future__ import annotations

from typing import NamedTuple


class Patient(NamedTuple):
    """One record of the hospital's table."""

    name: str
    zip: int
    hours: int
    disease: str


SNAPSHOTS: tuple[tuple[Patient, ...], ...] = (
    (
        Patient("Ken", 14000, 20, "Dyspepsia"),
        Patient("Julia", 16000, 23, "Pneumonia"),
        Patient("Tom", 24000, 32, "Pneumonia"),
        Patient("Harry", 26000, 35, "Gastritis"),
        Patient("Lily", 29000, 17, "Glaucoma"),
        Patient("Ben", 31000, 19, "Flu"),
    ),
    (
        Patient("Ken", 14000, 20, "Dyspepsia"),
        Patient("Julia", 18000, 31, "Lung Cancer"),
        Patient("Tom", 15000, 27, "Pneumonia"),
        Patient("Harry", 23000, 32, "Dyspepsia"),
        Patient("Lily", 12000, 17, "Glaucoma"),
        Patient("Ben", 26000, 35, "Pneumonia"),
    ),
)

TWO_DIVERSE: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("Ken", "Julia"), ("Tom", "Harry"), ("Lily", "Ben")),
    (("Ken", "Lily"), ("Julia", "Tom"), ("Harry", "Ben")),
)
"""Who shares a group in the tables that the paper starts from."""

UPDATES: dict[str, tuple[str, ...]] = {
    "Dyspepsia": ("Dyspepsia", "Gastritis"),
    "Gastritis": ("Gastritis", "Dyspepsia"),
    "Flu": ("Flu", "Pneumonia"),
    "Pneumonia": ("Pneumonia", "Lung Cancer"),
    "Lung Cancer": ("Lung Cancer", "Pneumonia"),
    "Glaucoma": ("Glaucoma", "Cataract"),
    "Cataract": ("Cataract", "Glaucoma"),
}
"""What a disease may be two months later, each with probability 1/2 as in the paper's figure."""
