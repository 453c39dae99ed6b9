"""Releases of other tools: what is read from files, and what is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pg_mdistinct import foreign
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.foreign import Columns, ForeignReleases, ModelRow, ReleaseRow

MODEL = [ModelRow("a", "a", None), ModelRow("a", "b", None), ModelRow("b", "b", None)]
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return make


def loaded(*rows: tuple[str, str | None, str, str], consecutive: bool = False) -> ForeignReleases:
    return foreign.load([ReleaseRow(*row) for row in rows], MODEL, consecutive=consecutive)


def refused(model: list[tuple[str, str, str | None]]) -> MdistinctError:
    rows = [ReleaseRow("1", "Ann", "1", "a")]
    with pytest.raises(MdistinctError) as caught:
        foreign.load(rows, [ModelRow(*row) for row in model])
    assert caught.value.hint
    return caught.value


def test_rows_become_a_history() -> None:
    found = loaded(
        ("2", "Ann", "x", "b"),
        ("1", "Ann", "x", "a"),
        ("1", None, "x", "b"),
        ("1", "Bob", "y", "a"),
        ("2", "Bob", "x", "a"),
    )
    history = found.history
    assert found.records == ["Ann", "Bob"]
    assert found.releases == {1: "1", 2: "2"}
    assert history.release.tolist() == [1, 1, 2]
    assert history.counterfeits.tolist() == [1, 0, 0]
    assert [sorted(history.rows.row(g).tolist()) for g in range(3)] == [[0, 1], [0], [0, 1]]
    assert history.record.tolist() == [0, 0, 1, 1]
    assert history.version_release.tolist() == [1, 2, 1, 2]
    assert [found.model.labels[v] for v in history.value] == ["a", "b", "a", "a"]


@pytest.mark.parametrize(
    ("names", "consecutive", "numbers"),
    [
        (("1", "3"), False, [1, 3]),
        (("1.0", "3.0"), False, [1, 3]),
        (("2008", "2010"), True, [1, 2]),
        (("0.5", "10.5"), False, [1, 2]),
        (("2024-02-01", "2024-11-01"), False, [1, 2]),
        (("release 2", "release 10"), False, [1, 2]),
    ],
)
def test_release_names(names: tuple[str, str], consecutive: bool, numbers: list[int]) -> None:
    late, early = ("Ann", "x", "a"), ("Ann", "x", "a")
    found = loaded((names[1], *late), (names[0], *early), consecutive=consecutive)
    assert found.history.version_release.tolist() == numbers
    assert list(found.releases.items()) == list(zip(numbers, names, strict=True))


def test_files(write: Write) -> None:
    releases = write(
        "releases.csv",
        '\ufeffzip;who;round;group;illness\r\n1;"Ann; the first";1;7;a\r\n\r\n2;;1;7;b\r\n',
    )
    model = write("model.csv", "note,old_value,new_value,probability\n,a,a,0.25\n,a,b,.75\n,b,b,\n")
    columns = Columns("round", "who", "group", "illness")
    shares: list[float] = []
    rows = foreign.csv_releases(releases, columns, shares.append)
    found = foreign.load(rows, foreign.csv_model(model))
    assert found.records == ["Ann; the first"]
    assert found.history.counterfeits.tolist() == [1]
    assert found.model.transition.tolist() == [[0.25, 0.75], [0.0, 1.0]]
    assert shares
    assert 0 <= shares[0] <= 1


def test_a_value_without_updates_of_its_own_stays() -> None:
    found = foreign.load([ReleaseRow("1", "Ann", "1", "b")], [ModelRow("a", "b", None)])
    np.testing.assert_array_equal(found.model.transition, [[0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("release,record_id,gid\n", "42703", 'releases.csv has no column "value"'),
        ("", "42703", "no column"),
        ("release,record_id,gid,value\n1,Ann,1\n", "22023", "line 2: 3 cells, but 4 columns"),
        ("release,record_id,gid,value\n1,Ann,,a\n", "23502", 'line 2: nothing in "gid"'),
        ("release,record_id,gid,value\n1,Ann,1,a\n,B,1,\n", "23502", '"release" and "value"'),
        ("release,record_id,gid,value\n", "22023", "no published rows"),
        ("release,record_id,gid,value\n1,Ann,1,c\n", "MD001", 'the published values: "c"'),
        ("release,record_id,gid,value\n1,Ann,1,a\n1,Ann,2,b\n", "23505", '"Ann"'),
    ],
)
def test_bad_releases(write: Write, text: str, state: str, message: str) -> None:
    path = write("releases.csv", text)
    with pytest.raises(MdistinctError) as caught:
        foreign.load(foreign.csv_releases(path), MODEL)
    assert message in caught.value.message
    assert caught.value.sqlstate == state
    assert caught.value.hint


def test_all_columns_are_named_when_one_is_missing(write: Write) -> None:
    path = write("releases.csv", "round,who\n")
    with pytest.raises(MdistinctError) as caught:
        list(foreign.csv_releases(path))
    assert caught.value.detail == 'Its columns are: "round", "who".'


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(MdistinctError, match="No such file"):
        list(foreign.csv_model(tmp_path / "nowhere.csv"))
    latin = tmp_path / "latin.csv"
    latin.write_bytes("old_value,new_value\nGrippe,Lungenentzündung\n".encode("latin-1"))
    with pytest.raises(MdistinctError, match="UTF-8"):
        list(foreign.csv_model(latin))


def test_only_ten_culprits_are_named() -> None:
    rows = [ReleaseRow("1", str(i), "1", f"v{i}") for i in range(12)]
    with pytest.raises(MdistinctError, match=r'12 of the .*"v9" and 2 more\n'):
        foreign.load(rows, MODEL)


def test_bad_models() -> None:
    assert "is empty" in refused([]).message
    assert "given twice" in refused([("a", "b", None), ("a", "b", None)]).message
    assert "sum to 0.9, not to 1" in refused([("a", "a", "0.4"), ("a", "b", "0.5")]).message
    assert "only 1 of the 2 updates" in refused([("a", "a", "1"), ("a", "b", None)]).message
    for text in ("-0.5", "nan", "1.5", "often", "inf"):
        found = refused([("a", "a", text)])
        assert found.message == f'the probability of "a" -> "a" is {text}'
        assert found.sqlstate == "22023"


def test_model_cells_must_be_filled(write: Write) -> None:
    path = write("model.csv", "old_value,new_value\na,\n")
    with pytest.raises(MdistinctError, match=r'line 2: nothing in "new_value"'):
        list(foreign.csv_model(path))
