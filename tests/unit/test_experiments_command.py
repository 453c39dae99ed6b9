"""The command regenerates figures: seeded, resumable, and never half a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from pg_mdistinct.cli import main
from pg_mdistinct.experiments import charts, store
from pg_mdistinct.experiments.registry import Chart, Outcome, Setting, Table, experiments

DOCS = Path(__file__).parents[2] / "docs"
FIGURES = DOCS / "experiments"
LARGEST_FIGURE = 100_000
TABLE = Table("some", ("x", "y", "kind"), ((1, 0.5, "a"), (2, None, "a"), (1, 2 / 3, "b")))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["experiment", *map(str, arguments)])


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".json"}


def test_names_are_listed() -> None:
    found = run()
    assert found.exit_code == 0
    for name in experiments():
        assert name in found.stdout


def test_unknown_names_are_told() -> None:
    found = run("bond")
    assert found.exit_code == 2
    assert "no experiment called bond" in found.stderr


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    arguments = ("disclosure-groups", "--scale", 0.01)
    for folder in ("one", "two"):
        assert run(*arguments, "-o", tmp_path / folder).exit_code == 0
    assert run(*arguments, "-o", tmp_path / "other", "--seed", 1).exit_code == 0
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one.keys() == {"disclosure-groups.csv", "disclosure-groups.svg"}
    assert one == two
    assert one["disclosure-groups.csv"] != other["disclosure-groups.csv"]


def test_what_is_finished_is_not_computed_again(tmp_path: Path) -> None:
    again = "bound: finished before"
    assert again not in run("bound", "-o", tmp_path).stderr
    table = tmp_path / "bound.csv"
    table.write_text("touched")
    assert again in run("bound", "-o", tmp_path).stderr
    assert table.read_text() == "touched"
    for changed in (("--scale", 0.5), ("--seed", 1), ("--again",)):
        table.write_text("touched")
        assert again not in run("bound", "-o", tmp_path, *changed).stderr
        assert table.read_text() != "touched"
    (tmp_path / "bound.svg").unlink()
    assert again not in run("bound", "-o", tmp_path).stderr
    assert (tmp_path / "bound.svg").exists()


def test_an_experiment_is_finished_only_with_all_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store.Store(tmp_path)
    chart = Chart("some", TABLE, "x", "y", "x", "y", "kind")
    outcome = Outcome((TABLE,), (chart,))
    write = store._write

    def fail(path: Path, content: str) -> None:
        if path.suffix == ".svg":
            raise OSError("no space left")
        write(path, content)

    monkeypatch.setattr(store, "_write", fail)
    with pytest.raises(OSError, match="no space"):
        kept.keep("one", Setting(), outcome, 1.0)
    assert not kept.has("one", Setting())
    monkeypatch.undo()
    kept.keep("one", Setting(), outcome, 1.0)
    kept.keep("two", Setting(), Outcome((TABLE,)), 1.0)
    assert kept.has("one", Setting())
    assert kept.has("two", Setting())
    assert not kept.has("one", Setting(0.5))
    assert {file.name for file in tmp_path.iterdir()} == {"some.csv", "some.svg", store.FINISHED}


def test_tables_show_what_is_missing_as_nothing() -> None:
    assert store.as_csv(TABLE) == "x,y,kind\n1,0.5,a\n2,,a\n1,0.666667,b\n"
    with pytest.raises(ValueError, match="needs 2 cells"):
        Table("wrong", ("x", "y"), ((1,),))


@pytest.mark.parametrize("bars", [False, True])
def test_charts_name_their_lines_and_axes(bars: bool) -> None:
    drawn = charts.draw(Chart("some", TABLE, "x", "y", "across", "up", "kind", bars=bars))
    texts = {text for element in ElementTree.fromstring(drawn).iter() if (text := element.text)}
    assert {"across", "up", "a", "b"} <= texts
    assert drawn == charts.draw(Chart("some", TABLE, "x", "y", "across", "up", "kind", bars=bars))
    assert "Date" not in drawn


@pytest.mark.parametrize("scale", [0, -1, 1.5])
def test_scales_beyond_the_papers_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be"):
        Setting(scale)
    assert run("bound", "--scale", scale).exit_code == 2


def test_the_page_discusses_every_experiment_and_shows_figures_that_are_there() -> None:
    pages = [DOCS / "experiments.md", FIGURES / "panels.md"]
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    finished = json.loads((FIGURES / store.FINISHED).read_text(encoding="utf-8"))
    assert finished.keys() == experiments().keys()
    files = {file for note in finished.values() for file in note["files"]}
    assert {file.name for file in FIGURES.iterdir()} == files | {store.FINISHED, "panels.md"}
    assert set(re.findall(r"\]\((?:experiments/)?([\w-]+\.(?:svg|csv))", texts)) <= files
    for name, note in finished.items():
        assert name in texts
        assert note["parameters"]["scale"] == 1.0
        for file in note["files"]:
            assert 0 < (FIGURES / file).stat().st_size < LARGEST_FIGURE


def test_every_figure_of_the_paper_is_shown_with_its_claim_and_table() -> None:
    page = (DOCS / "experiments.md").read_text(encoding="utf-8")
    parts = {part.partition("`")[0]: part for part in page.split("### `")[1:]}
    of_the_paper = [name for name in experiments() if not name.startswith("panel")]
    for name in of_the_paper:
        assert f"](experiments/{name}.svg)" in parts[name]
        assert f"](experiments/{name}.csv)" in parts[name]
        assert "*The paper" in parts[name]


@pytest.mark.slow
def test_all_of_them_run(tmp_path: Path) -> None:
    """A hundredth of the paper's scale; what lacks tools or data that are elsewhere is told."""
    found = run("all", "--scale", 0.01, "-o", tmp_path)
    assert found.exit_code == 0, found.output
    finished = json.loads((tmp_path / store.FINISHED).read_text(encoding="utf-8"))
    for name in experiments().keys() - finished.keys():
        assert f"left out: {name} needs" in found.stderr or f"{name}: skipped" in found.stderr
    assert len(finished) >= 15
    files = {file for note in finished.values() for file in note["files"]}
    assert {file.name for file in tmp_path.iterdir()} == files | {store.FINISHED}
