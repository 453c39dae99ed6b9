"""`pg-mdistinct report`: the page's figures are the database's, and readers learn no secrets."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest
from click.testing import CliRunner, Result
from matplotlib.image import imread
from psycopg.conninfo import make_conninfo

from pg_mdistinct.cli import main
from pg_mdistinct.client import Client
from pg_mdistinct.demo import hospital
from tests.integration.client_cases import COLUMNS, MODEL, make_patients

Connection = psycopg.Connection[Any]
Rows = list[list[str]]
Element = ElementTree.Element

NAMES = {person.name for snapshot in hospital.SNAPSHOTS for person in snapshot}
# The only addresses of a page are names of vocabularies, which nobody fetches.
VOCABULARY = 'xmlns="http://www.w3.org/2000/svg"'


@pytest.fixture
def client(dsn: str) -> Iterator[Client]:
    with Client(dsn) as client:
        yield client


@pytest.fixture
def published(client: Client, db: Connection) -> Client:
    """The hospital, published twice."""
    db.execute("CREATE TABLE hospital (name text PRIMARY KEY, zip int, hours int, disease text)")
    client.register(
        "hospital", "hospital", "name", ["zip", "hours"], "disease", 2, "m-distinct*", 0.9
    )
    client.load_updates("hospital", {old: list(new) for old, new in hospital.UPDATES.items()})
    for snapshot in hospital.SNAPSHOTS:
        with db.transaction(), db.cursor() as cursor:
            cursor.execute("TRUNCATE hospital")
            cursor.executemany("INSERT INTO hospital VALUES (%s, %s, %s, %s)", snapshot)
        client.publish("hospital")
    return client


def as_role(dsn: str, role: str) -> str:
    return make_conninfo(dsn, options=f"-c role={role}")


def invoke(dsn: str, path: Path, *arguments: str, dataset: str = "hospital") -> Result:
    return CliRunner().invoke(
        main, ["report", dataset, "-o", str(path), "--dsn", dsn, *arguments], env={"COLUMNS": "200"}
    )


def page(dsn: str, path: Path, *arguments: str, dataset: str = "hospital") -> Element:
    """The page as a tree, which only well-formed ones have."""
    result = invoke(dsn, path, *arguments, dataset=dataset)
    assert result.exit_code == 0, result.output
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_id(tree: Element, name: str) -> Element:
    (found,) = tree.iterfind(f".//*[@id='{name}']")
    return found


def table(tree: Element, name: str) -> Rows:
    """The cells of a table's body."""
    return [[words(cell) for cell in row] for row in by_id(tree, name).iterfind("tbody/tr")]


def shown(share: float | None) -> str:
    return "not measured" if share is None else f"{share:.1%}"


def test_figures_are_those_of_the_database(
    published: Client, db: Connection, dsn: str, tmp_path: Path
) -> None:
    tree = page(as_role(dsn, "mdistinct_admin"), tmp_path / "report.html")
    check_figures(tree, published, db)


def check_figures(tree: Element, published: Client, db: Connection) -> None:
    """What a tree shows is what SQL says: releases, risks, group sizes, tiles, the model."""
    releases = db.execute(
        "SELECT release::text, to_char(published_at, 'YYYY-MM-DD HH24:MI'), 'm-Distinct*', m::text,"
        " (records + counterfeits)::text, groups::text, counterfeits::text, withheld::text, ncp,"
        " max_risk FROM mdistinct.releases ORDER BY release"
    ).fetchall()
    assert table(tree, "releases") == [
        [*texts, shown(ncp), shown(risk)] for *texts, ncp, risk in releases
    ]
    risks = db.execute(
        "SELECT release::text, count(*)::text, count(*) FILTER (WHERE candidates = 1)::text,"
        " min(risk), avg(risk), max(risk)"
        " FROM mdistinct_risk('hospital') GROUP BY release ORDER BY release"
    ).fetchall()
    cells = table(tree, "risks")
    assert [[*row[:5], row[7]] for row in cells] == [
        [*texts, *map(shown, figures)] for *texts, figures in ((*r[:3], r[3:]) for r in risks)
    ]
    sizes = db.execute(
        "SELECT size::text, count(*)::text FROM (SELECT count(*) AS size"
        " FROM mdistinct_published.hospital WHERE release = 2 GROUP BY gid) AS g"
        " GROUP BY size ORDER BY size"
    ).fetchall()
    assert table(tree, "group-sizes") == [list(row) for row in sizes]
    tiles = {name: words(by_id(tree, f"tile-{name}")) for name in ("risk", "m", "disclosed")}
    highest = published.republication_risk("hospital")
    assert tiles == {"risk": shown(highest), "m": "2", "disclosed": "0"}
    assert "nothing breaks the principle" in words(by_id(tree, "verified"))
    updates = db.execute("SELECT old_value, new_value FROM mdistinct.updates ORDER BY 1, 2")
    assert [row[:2] for row in table(tree, "updates")] == [list(row) for row in updates]


def test_an_admin_gets_identifiers_on_a_page_that_stands_alone(
    published: Client, dsn: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    tree = page(as_role(dsn, "mdistinct_admin"), path, "--record", "Ben")
    riskiest = table(tree, "riskiest")
    assert len(riskiest) == 10
    assert {row[0] for row in riskiest} <= NAMES
    assert riskiest[0][2] == shown(max(v.risk for v in published.risk("hospital")))
    assert "What the releases tell about Ben" in words(by_id(tree, "record-words"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    check_alone(tree, path.read_text(encoding="utf-8"))
    check_accessible(tree)


def check_alone(tree: Element, text: str) -> None:
    """Nothing is fetched, nothing runs, and light, dark and paper are provided for."""
    (image,) = tree.iter("img")
    assert image.attrib["src"].startswith("data:image/svg+xml;base64,")
    assert "Ben" in image.attrib["alt"]
    written = text.replace(VOCABULARY, "").replace(image.attrib["src"], "")
    assert not re.search(r"https?:|//[a-z]|@import", written)
    assert "url(" not in written.replace("url(#", "")
    assert not list(tree.iter("script"))
    for element in tree.iter():
        for name in ("src", "href"):
            assert element.get(name, "#").startswith(("#", "data:"))
    assert "@media screen and (prefers-color-scheme: dark)" in text
    assert "@media print" in text


def check_accessible(tree: Element) -> None:
    """Headings, names and tables are there for those who do not see the charts."""
    assert tree.attrib["lang"] == "en"
    names = [element.attrib["id"] for element in tree.iter() if "id" in element.attrib]
    assert len(names) == len(set(names))
    assert len(list(tree.iter("h1"))) == 1
    for section in tree.iter("section"):
        assert by_id(section, section.attrib["aria-labelledby"]).tag == "h2"
    assert all(found.find("caption") is not None for found in tree.iter("table"))
    assert all("scope" in cell.attrib for cell in tree.iter("th"))
    drawings = list(tree.iter("{http://www.w3.org/2000/svg}svg"))
    assert len(drawings) == 6
    assert all(d.attrib["role"] == "img" and d.attrib["aria-label"] for d in drawings)
    # Colours follow the page; one of Matplotlib's own would vanish on dark paper.
    styles = "".join(e.get("style", "") for d in drawings for e in d.iter())
    assert "var(--ink)" in styles
    assert not re.search(r"#[0-9a-f]{6}", styles)


@pytest.mark.parametrize("arguments", [(), ("--for-readers",)])
def test_a_reader_gets_none(
    published: Client, db: Connection, dsn: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Nor do those to whom an admin gives a report that was made for readers."""
    role = "mdistinct_admin" if arguments else "mdistinct_reader"
    tree = page(as_role(dsn, role), tmp_path / "report.html", *arguments)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not {name for name in NAMES if re.search(rf"\b{name}\b", text)}
    assert {element.attrib["id"] for element in tree.iter("table")} == {"releases", "group-sizes"}
    assert [row[0] for row in table(tree, "releases")] == ["1", "2"]
    assert all(len(row) == 7 for row in table(tree, "releases"))
    risks = {shown(v.risk) for v in published.risk("hospital")}
    assert not {risk for risk in risks if risk in words(tree)}
    assert "Left out: to tell risks" in words(tree)
    assert "Left out: it takes the source" in words(tree)
    values = {value for (value,) in db.execute("SELECT old_value FROM mdistinct.updates")}
    assert not {value for value in values if value in text}


def test_a_reader_may_not_ask_for_a_record(published: Client, dsn: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    refused = invoke(as_role(dsn, "mdistinct_reader"), path, "--record", "Ben")
    assert refused.exit_code == 1
    assert "HINT" in refused.output
    assert invoke(dsn, path, "--record", "Ben", "--for-readers").exit_code == 2
    assert not list(tmp_path.iterdir())


def test_sample_queries_are_those_of_source_and_release(
    client: Client, db: Connection, dsn: str, tmp_path: Path
) -> None:
    dataset = client.register("ward", make_patients(db), *COLUMNS)
    dataset.load_updates(MODEL)
    dataset.publish()
    tree = page(dsn, tmp_path / "report.html", dataset="ward")
    asked = {row[0]: row[1:] for row in table(tree, "samples")}
    for where, condition, text in (
        ({"age": [23, 29]}, "age BETWEEN 23 AND 29", "age from 23 to 29"),
        ({"Town": ["Bath"]}, "\"Town\" = 'Bath'", "Town is Bath"),
        (
            {"age": [23, 29], "Town": ["Bath"]},
            "age BETWEEN 23 AND 29 AND \"Town\" = 'Bath'",
            "age from 23 to 29 and Town is Bath",
        ),
    ):
        row = db.execute(f'SELECT count(*) FROM ward."Patients" WHERE {condition}'.encode())
        answer = dataset.estimate(where)
        (truth,) = row.fetchone() or (None,)
        assert asked[text][:2] == [str(truth), f"{answer.count:,.1f}"]
    closed = page(as_role(dsn, "mdistinct_admin"), tmp_path / "closed.html", dataset="ward")
    assert "the source could not be asked (permission denied" in words(closed)


def test_values_of_users_stay_texts(
    client: Client, db: Connection, dsn: str, tmp_path: Path
) -> None:
    nasty = ["<script>alert(1)</script>", "a & 'b' \"c\"", "$x_1$ #2563eb", "水\x07{{ 7*7 }}"]
    db.execute("CREATE TABLE people (id text PRIMARY KEY, age int, value text)")
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO people VALUES (%s, %s, %s)",
            [(f"<i>{i}</i>", 20 + i, nasty[i % 4]) for i in range(12)],
        )
    dataset = client.register("<b>", "people", "id", ["age"], "value", 2)
    dataset.load_updates(dict.fromkeys(nasty, nasty))
    dataset.publish()
    tree = page(dsn, tmp_path / "report.html", "--record", "<i>3</i>", dataset="<b>")
    assert words(tree).startswith("<b>: what was published")
    assert not [element.tag for element in tree.iter() if element.tag in ("script", "i", "b")]
    updates = {row[0] for row in table(tree, "updates")}
    assert updates == {value.replace("\x07", "\N{REPLACEMENT CHARACTER}") for value in nasty}
    labels = {words(text) for text in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert "$x_1$ #2563eb" in labels


def test_errors_are_explained_and_write_nothing(
    published: Client, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("an older one")
    for arguments, dataset in (((), "nowhere"), (("--record", "Nobody"), "hospital")):
        result = invoke(dsn, path, *arguments, dataset=dataset)
        assert result.exit_code == 1
        assert "HINT" in result.output
    assert "cannot write" in invoke(dsn, tmp_path / "no" / "report.html").output

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "No space left" in invoke(dsn, path).output
    assert path.read_text() == "an older one"
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_without_the_extra(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pg_mdistinct.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke(dsn, tmp_path / "report.html")
    assert result.exit_code == 1
    assert "pip install 'pg-mdistinct[report]'" in result.output


@pytest.fixture
def browser() -> str:
    """A Chromium; `apt-get install chromium` brings one."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found


def test_a_browser_has_the_figures_of_the_database(
    published: Client, db: Connection, dsn: str, tmp_path: Path, browser: str
) -> None:
    path = tmp_path / "report.html"
    page(dsn, path, "--record", "Ben")
    check_figures(read_html(browse(browser, path, "--dump-dom")), published, db)


def test_a_browser_shows_it_in_light_and_dark(
    published: Client, dsn: str, tmp_path: Path, browser: str
) -> None:
    path = tmp_path / "report.html"
    page(dsn, path, "--record", "Ben")
    assert brightness(browser, path) > 200
    # 0 is Blink's number for dark.
    assert brightness(browser, path, "--blink-settings=preferredColorScheme=0") < 60


def test_what_a_browser_complains_of_is_heard(tmp_path: Path, browser: str) -> None:
    path = tmp_path / "page.html"
    path.write_text("<script>console.error('no such chart')</script>")
    with pytest.raises(AssertionError, match="no such chart"):
        browse(browser, path, "--dump-dom")


def browse(browser: str, path: Path, *options: str) -> str:
    """Opens a page, which must not complain; returns what the browser prints."""
    shown = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--user-data-dir={path.with_name('profile')}", "--window-size=1100,4200"),
            *("--enable-logging=stderr", "--v=0", *options),
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in shown.stderr, shown.stderr
    return shown.stdout


def brightness(browser: str, path: Path, *options: str) -> float:
    """How bright a page is, from 0 to 255."""
    picture = path.with_suffix(".png")
    browse(browser, path, f"--screenshot={picture}", *options)
    return float(imread(picture)[..., :3].mean() * 255)


class DomReader(HTMLParser):
    """Makes a tree of what a browser has made of a page: all is closed but what has no end."""

    VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "wbr"))

    def __init__(self) -> None:
        super().__init__()
        self.builder = ElementTree.TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in self.VOID:
            self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


def read_html(text: str) -> Element:
    reader = DomReader()
    reader.feed(text[text.index("<html") :].strip())
    return reader.builder.close()
