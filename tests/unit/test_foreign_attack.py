"""The attack on foreign releases, from Python and from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pg_mdistinct import foreign
from pg_mdistinct.cli import main
from pg_mdistinct.foreign import AttackReport, ModelRow, ReleaseRow
from tests.oracle import hospital
from tests.oracle.history import Release


def rows_of(releases: Sequence[Release]) -> list[ReleaseRow]:
    """The oracle's tables as another tool would publish them."""
    rows = []
    for number, release in enumerate(releases, start=1):
        for gid, group in release.items():
            fakes = list(group.values)
            for record, value in group.members.items():
                rows.append(ReleaseRow(str(number), record, str(gid), str(value)))
                fakes.remove(str(value))
            rows += [ReleaseRow(str(number), None, str(gid), value) for value in fakes]
    return rows


MODEL = [
    ModelRow(old, new, str(float(p)))
    for old, row in hospital.MODEL.items()
    for new, p in row.items()
]
TWO_DIVERSE = rows_of([hospital.FIRST, hospital.SECOND_2_DIVERSE])
COUNTERFEITED = rows_of([hospital.FIRST, hospital.SECOND_COUNTERFEITED])


def examined(rows: list[ReleaseRow], *, joint: bool = False) -> AttackReport:
    return foreign.examine(foreign.load(rows, MODEL), joint=joint)


def test_two_diverse_hospital_is_broken() -> None:
    report = examined(TWO_DIVERSE)
    assert report.records == 6
    known = {found.record: found for found in report.first_disclosed}
    julia = known["Julia"]
    assert (julia.release, julia.value, julia.candidates) == ("1", "Pneumonia", 2)
    assert julia.versions == 1, "her second version keeps two candidates"
    assert report.disclosed_records == len(known) < report.records
    versions = sum(found.versions for found in known.values())
    assert report.total.disclosed == versions == sum(r.disclosed for r in report.releases)
    assert report.total.pruned == sum(r.pruned for r in report.releases) > 0
    assert report.total.risk.max == 1.0
    assert report.impossible_updates == 0
    assert report.joint is None


def test_hospital_with_counterfeits_is_not() -> None:
    report = examined(COUNTERFEITED)
    assert (report.total.pruned, report.total.disclosed, report.first_disclosed) == (0, 0, [])
    assert report.total.candidates == 2 * report.total.versions


def test_joint_attack_adds_what_only_it_finds() -> None:
    report = examined(TWO_DIVERSE, joint=True)
    assert report.joint is not None
    found = {(d.record, d.value) for d in report.joint.first_disclosed_beyond}
    # Tom's pneumonia of release 1 leaves Harry, who shares his group, with the other value.
    assert ("Harry", "Gastritis") in found
    assert report.joint.disclosed == report.total.disclosed + report.joint.disclosed_beyond
    assert report.joint.pruned_beyond >= report.joint.disclosed_beyond > 0
    assert report.joint.disclosed_records_beyond == len(found)
    assert report.joint.risen > 0


def test_ten_records_are_named() -> None:
    rows = [ReleaseRow(str(n), str(i), str(i), "Flu") for n in (1, 2) for i in range(12)]
    report = examined(rows)
    assert (report.disclosed_records, report.total.disclosed) == (12, 24)
    assert [(d.record, d.versions) for d in report.first_disclosed] == [
        (str(i), 2) for i in range(10)
    ]


def test_updates_that_the_model_calls_impossible_are_told() -> None:
    rows = [
        ReleaseRow("1", "Ann", "1", "Flu"),
        ReleaseRow("1", None, "1", "Glaucoma"),
        ReleaseRow("2", "Ann", "1", "Glaucoma"),
        ReleaseRow("2", None, "1", "Dyspepsia"),
    ]
    report = examined(rows)
    assert report.impossible_updates == 1
    (update,) = report.first_impossible_updates
    assert (update.record, update.old_value, update.new_value) == ("Ann", "Flu", "Glaucoma")
    # What is left for release 1 is glaucoma: certain, and wrong.
    assert [(d.release, d.value) for d in report.first_disclosed] == [("2", "Glaucoma")]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    model = [("old_value", "new_value", "probability"), *MODEL]
    header = ("release", "record_id", "gid", "value")
    for name, rows in (("broken", TWO_DIVERSE), ("safe", COUNTERFEITED)):
        _write(tmp_path / f"{name}.csv", [header, *rows])
    _write(tmp_path / "model.csv", model)
    return tmp_path


def _write(path: Path, rows: Sequence[Sequence[str | None]]) -> None:
    path.write_text("\n".join(",".join(cell or "" for cell in row) for row in rows))


def invoke(files: Path, name: str, *options: str) -> Result:
    arguments = ["attack", str(files / f"{name}.csv"), "--model", str(files / "model.csv")]
    return CliRunner().invoke(main, [*arguments, *options], env={"COLUMNS": "100"})


def test_command_line(files: Path) -> None:
    result = invoke(files, "broken")
    assert result.exit_code == 0, result.output
    assert "12 versions of 6 records in 2 releases" in result.output
    assert "Julia: Pneumonia in release 1" in result.output
    assert "median" in result.output
    assert "█" in result.output
    assert "Joint" not in result.output
    assert "Traceback" not in result.output


def test_command_line_has_good_news_too(files: Path) -> None:
    result = invoke(files, "safe")
    assert result.exit_code == 0, result.output
    assert "Nobody is disclosed, and no candidate can be excluded." in result.output


def test_command_line_joint(files: Path) -> None:
    result = invoke(files, "broken", "--joint")
    assert result.exit_code == 0, result.output
    assert "Joint attack" in result.output
    assert "Harry: Gastritis in release 1" in result.output
    limited = invoke(files, "broken", "--joint", "--joint-limit", "3")
    assert limited.exit_code == 1
    assert "too many worlds" in limited.output
    assert "HINT" in limited.output


def test_command_line_json(files: Path) -> None:
    result = invoke(files, "broken", "--json", "--joint")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["records"] == 6
    assert [r["release"] for r in report["releases"]] == ["1", "2"]
    assert report["total"]["risk"]["quantiles"]["1"] == 1.0
    assert report["joint"]["disclosed_beyond"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["attack"],
        ["attack", "a.csv"],
        ["attack", "a.csv", "--table", "t", "--model", "m.csv"],
        ["attack", "a.csv", "--model", "m.csv", "--model-table", "t"],
    ],
)
def test_command_line_wants_everything_once(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "once" in result.output


def test_command_line_explains_bad_input(files: Path) -> None:
    result = invoke(files, "broken", "--value-column", "disease")
    assert result.exit_code == 1
    assert 'no column "disease"' in result.output
    assert "HINT" in result.output
