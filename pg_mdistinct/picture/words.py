"""Texts of users in pictures: how much room they take, and how to shorten them."""

from __future__ import annotations

import unicodedata


def columns_of(text: str) -> int:
    """Return the width of a text in columns of a terminal; East Asian signs take two."""
    return sum(_width(sign) for sign in text)


def _width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def shortened(text: str, most: int) -> str:
    """Cut a text that is wider than that many columns, and show that it was cut."""
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    if columns_of(text) <= most:
        return text
    kept, used = "", 1
    for sign in text:
        used += _width(sign)
        if used > most:
            break
        kept += sign
    return kept.rstrip() + "…"
