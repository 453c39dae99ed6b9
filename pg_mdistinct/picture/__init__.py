"""The update graph of one record as a picture, drawn as SVG or in a terminal."""

from __future__ import annotations

from pg_mdistinct.picture.graph import Edge, Node, UpdateGraphPicture
from pg_mdistinct.picture.svg import as_svg
from pg_mdistinct.picture.terminal import as_text, as_words

__all__ = ["Edge", "Node", "UpdateGraphPicture", "as_svg", "as_text", "as_words"]
