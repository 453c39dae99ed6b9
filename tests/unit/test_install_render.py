from __future__ import annotations

from pathlib import Path

import pytest

from pg_mdistinct.install.errors import InstallError
from pg_mdistinct.install.render import Rendering, render

RENDERING = Rendering(
    code="/data/it's/0.1.0",
    version="0.1.0",
    load="CODE = @CODE@\nfrom pg_mdistinct.server import @MODULES@\n",
    modules=("publication", "registration", "updates"),
)


def rendered(folder: Path, text: str) -> str:
    path = folder / "f.sql"
    path.write_text(text)
    return render(path, RENDERING)


def test_load_imports_what_the_body_calls(tmp_path: Path) -> None:
    text = rendered(tmp_path, "$$\n@LOAD@\nreturn publication.publish(plpy, my.updates.x)\n$$")
    assert text == (
        '$$\nCODE = "/data/it\'s/0.1.0"\nfrom pg_mdistinct.server import publication\n'
        "return publication.publish(plpy, my.updates.x)\n$$"
    )


def test_text_without_placeholders_stays(tmp_path: Path) -> None:
    text = "SELECT '100 %' AS \"a:b\", :x, user@host -- @ @"
    assert rendered(tmp_path, text) == text


def test_version(tmp_path: Path) -> None:
    assert rendered(tmp_path, "SELECT '@VERSION@'") == "SELECT '0.1.0'"


@pytest.mark.parametrize("text", ["@LOAD@\nreturn 1", "@LOAD@\nreturn unknown.call(plpy)"])
def test_load_without_a_call_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InstallError, match=r"f\.sql uses @LOAD@ but calls no module"):
        rendered(tmp_path, text)


def test_unknown_placeholder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="unknown placeholder @LAOD@"):
        rendered(tmp_path, "@LAOD@")
