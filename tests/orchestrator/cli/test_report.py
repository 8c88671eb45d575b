"""`report` and `verify` on recorded studies: what is printed, written and stored, and the exit codes."""

import base64
import csv
import hashlib
import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.audit.record import record_audit
from orchestrator.cli import report_summary
from orchestrator.cli.report import report
from orchestrator.cli.verify import verify
from orchestrator.environment.settings import read_settings
from orchestrator.report.analysis_figures import AnalysisFigure
from orchestrator.report.figure.analysis import draw
from orchestrator.results.audit import Audited, Finding
from orchestrator.results.study import Study
from orchestrator.scheduler.search_store import read_trials
from orchestrator.tracking.client import Tracking
from search_spaces import find
from tests.orchestrator.made_searches import make_search
from tests.orchestrator.recorded import Store, replicate
from tests.orchestrator.report.studies import small_study
from trainables.errors import InputError

KINDS = ("conditions", "comparisons", "equal_cost", "training", "over_items", "claims", "metrics", "replicates")
EMPTY = {"asr.demo.training.tex", "asr.demo.over_items.tex"}
"""Of these tables, which have no rows here, there is no LaTeX."""

FILES = {f"asr.demo.{kind}.{end}" for kind in KINDS for end in ("md", "tex", "csv")} - EMPTY | {"asr.demo.report.html"}


@pytest.fixture
def store(workplace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    return Store(workplace / "runs" / "mlflow.db")


@pytest.fixture
def recorded(store):
    """The small study in the store, and which files were stored beside it, without storing them."""
    study = small_study()
    for i, condition in enumerate(study.conditions, 1):
        store.write(list(study.of(condition)), revision=i, start_ms=i)
    return store


@pytest.fixture
def stored(recorded, monkeypatch):
    calls = []
    monkeypatch.setattr(Tracking, "store_report", lambda _, sweep, files: calls.append((sweep, *files)))
    return calls


def call(*arguments):
    """The outcome of a command line, as a user types it."""
    return CliRunner().invoke(_app(), [str(argument) for argument in arguments])


def _app():
    app = typer.Typer()
    app.command()(report)
    app.command()(verify)
    return app


def test_analyses_that_were_drawn_elsewhere_are_shown_from_the_store(recorded, tmp_path):
    """A figure of another machine is in MLflow alone; one of this machine stands in the place of its older copy."""
    local, elsewhere = read_settings().figures, tmp_path / "elsewhere"
    for folder, titles in ((elsewhere, ("big: words", "random: words")), (local, ("random: words",))):
        for title in titles:
            rows = [{"word": "a", "nats": 1.0 if folder == local else 2.0, "nats_std": 0.1}]
            file = folder / f"{title.partition(':')[0]}.png"
            draw(rows, ("word",), "nats", None, file, title, AnalysisFigure("asr.demo", title, "Of words."))
    Tracking(read_settings()).store_figures("asr.demo", sorted(elsewhere.glob("*.png")))
    assert call("report", "asr.demo", "--output", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "asr.demo.report.html").read_text()
    assert page.count('<img class="analysis"') == 2 and "big: words. Of words." in page
    shown = [
        base64.b64encode(file.read_bytes()).decode() in page
        for file in (local / "random.png", elsewhere / "random.png")
    ]
    assert shown == [True, False]


def test_files_are_written_where_they_are_said_to_be_and_stored_in_mlflow(recorded):
    found = call("report", "asr.demo")
    assert found.exit_code == 0, found
    folder = Path("runs/reports/asr.demo")
    assert {path.name for path in folder.iterdir()} == FILES
    lines = found.stdout.splitlines()
    assert "Report: runs/reports/asr.demo/asr.demo.report.html" in lines
    assert "Tables: runs/reports/asr.demo (22 files: .md, .tex, .csv)" in lines
    (run,) = recorded.client.search_runs([recorded.experiment_id], "tags.`ponderay.kind` = 'sweep'")
    assert {Path(file.path).name for file in recorded.client.list_artifacts(run.info.run_id, "report")} == FILES
    page = (folder / "asr.demo.report.html").read_text()
    assert "surprisal" in page and "cut off, &#34;so&#34;" in page


def test_people_are_shown_front_summary_verdicts_and_warnings(stored):
    found = call("report", "asr.demo").stdout
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in found.splitlines() if line[:1] == "│"]
    assert {row[1] for row in rows} == {
        f"{condition}@{evaluation}"
        for condition in ("random", "surprisal", "always_big")
        for evaluation in ("greedy", "stochastic")
    }
    assert "Of 6 points (condition@evaluation)," in found and "The hypervolume of the front" in found
    assert "In per, against" in found
    assert "Warning: Of 9 replicates, 1 failed: they count in nothing here.\n" in found


def test_a_verdict_has_a_line_and_one_reason_for_several_claims_is_said_once(stored, monkeypatch):
    from orchestrator.published.verdict import Finding, Verdict
    from orchestrator.report import answers
    from orchestrator.statistics.summary import NONE
    from search_spaces.claim import Place, Setting, Source, StatementClaim

    place, source, setting = Place("surprisal", "per"), Source("A paper", "Table 2"), Setting("anywhere")
    claim = StatementClaim("c", ("asr.demo",), "[b]surprisal[/b] is best.", place, "below", 1.0, source, setting)
    verdicts = (
        Verdict(claim, Finding.inconclusive, None, 0.0, NONE, 0.5, "The interval reaches zero."),
        Verdict(claim, Finding.not_comparable, None, 0.0, NONE, 0.5, "Other data."),
        Verdict(claim, Finding.not_comparable, None, 0.0, NONE, 0.5, "Another size."),
        Verdict(claim, Finding.not_comparable, None, 0.0, NONE, 0.5, "Other data."),
    )
    monkeypatch.setattr(answers, "judge", lambda *_: verdicts)
    found = call("report", "asr.demo").stdout
    assert "INCONCLUSIVE    [b]surprisal[/b] is best: The interval reaches zero.\n" in found
    assert "NOT COMPARABLE  [b]surprisal[/b] is best: Another size.\n" in found
    assert "NOT COMPARABLE  2 claims: Other data.\n" in found and found.count("Other data.") == 1
    assert "Of 4 published claims: 1 INCONCLUSIVE, 3 NOT COMPARABLE." in found


def test_a_recorded_study_held_against_published_numbers_has_one_of_each_verdict(workplace, monkeypatch):
    from orchestrator.published.verdict import Finding
    from tests.orchestrator.published.test_judge import RESULTS, SWEEP, replicates

    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr(Tracking, "store_report", lambda *_: None)
    store = Store(workplace / "runs" / "mlflow.db", SWEEP)
    for revision, condition in enumerate(RESULTS, start=1):
        cost = {f"macs_per_frame@{name}": 6.6e6 + revision for name in ("stochastic", "deterministic")}
        listed = [replace(one, metrics={**one.metrics, **cost}) for one in replicates(condition)]
        store.write(listed, revision, start_ms=revision)
    found = call("report", SWEEP)
    assert found.exit_code == 0, found
    lines = found.stdout.splitlines()
    page = Path(f"runs/reports/{SWEEP}/{SWEEP}.report.html").read_text()
    for finding in Finding:
        assert any(line.startswith(f"{finding.value} ") for line in lines) and finding.value in page, finding


def test_a_sweep_is_held_against_its_claims_by_verify_as_in_the_report(workplace, monkeypatch):
    from tests.orchestrator.published.test_judge import EXPECTED, SWEEP, replicates

    monkeypatch.setenv("COLUMNS", "250")
    store = Store(workplace / "runs" / "mlflow.db", SWEEP)
    for revision, condition in enumerate(("train_stochastic", "train_deterministic"), start=1):
        store.write(replicates(condition), revision, start_ms=revision)
    rows = json.loads(call("verify", SWEEP, "--format", "json").stdout)
    findings = {row["id"]: row["finding"] for row in rows}
    assert {name: findings[name] for name in EXPECTED} == {name: one.value for name, one in EXPECTED.items()}
    listed = list(csv.DictReader(io.StringIO(call("verify", SWEEP, "--format", "csv").stdout)))
    assert [row["id"] for row in listed] == [row["id"] for row in rows]
    shown = call("verify", SWEEP).stdout
    assert "REPRODUCED      released_per of train_stochastic@stochastic (" in shown and "WORSE " in shown


def test_a_sweep_is_judged_as_it_was_recorded_not_as_it_is_declared_now(workplace):
    """Recorded with other data than a claim's setting asks for."""
    from tests.orchestrator.published.test_judge import SWEEP, replicates

    store = Store(workplace / "runs" / "mlflow.db", SWEEP)
    store.write(replicates("train_stochastic"), 1, start_ms=1, params={"data.kind": "onsets"})
    rows = json.loads(call("verify", SWEEP, "--format", "json").stdout)
    found = {row["finding"] for row in rows if "train_stochastic" in row["claim"]}
    assert found == {"NOT COMPARABLE"} and any("data.kind is onsets" in row["reason"] for row in rows)


def test_a_sweep_of_which_nothing_is_published_says_so(store):
    store.client.rename_experiment(store.experiment_id, "act.search_parity")
    store.write([replicate("a", 1)], revision=1)
    assert call("verify", "act.search_parity").stdout == "Nothing published is known of this sweep.\n"


def test_json_is_whole_and_strict_and_progress_goes_to_stderr(stored):
    found = call("report", "asr.demo", "--bundle", "it.zip", "--format", "json")
    assert "Reading asr.demo ...\n" in found.stderr and "..." not in found.stdout

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    content = json.loads(found.stdout, parse_constant=refuse)
    assert list(content) == ["sweep", "summary", "warnings", *KINDS[:6], "importance", "files", "bundle"]
    assert {row["condition"] for row in content["conditions"]} == {"random", "surprisal", "always_big"}
    assert {row["p_dominates_reference"] for row in content["conditions"] if row["condition"] == "random"} == {None}
    assert len(content["comparisons"]) == 2 * 2 * 2
    assert content["bundle"] == {"path": "it.zip", "sha256": hashlib.sha256(Path("it.zip").read_bytes()).hexdigest()}
    assert stored == [("asr.demo", *map(Path, content["files"]))]


def test_csv_is_one_cell_a_line_and_agrees_with_the_files(stored):
    listed = list(csv.DictReader(io.StringIO(call("report", "asr.demo", "--format", "csv").stdout)))
    assert list(listed[0]) == ["table", "row", "column", "value"]
    cells = {(one["table"], int(one["row"]), one["column"]): one["value"] for one in listed}
    written = list(csv.DictReader(io.StringIO(Path("runs/reports/asr.demo/asr.demo.conditions.csv").read_text())))
    assert [cells["conditions", i, "per_mean"] for i in range(1, 7)] == [row["per_mean"] for row in written]


def test_the_folder_and_the_bundle_go_where_they_are_asked_to(stored):
    assert call("report", "asr.demo", "--output", "here/it", "--bundle", "there/it.zip").exit_code == 0
    assert {path.name for path in Path("here/it").iterdir()} == FILES
    assert [path.name for path in Path("there").iterdir()] == ["it.zip"]
    with zipfile.ZipFile("there/it.zip") as archive:
        assert archive.read("report.html") == Path("here/it/asr.demo.report.html").read_bytes()
    assert not Path("runs/reports").exists()


def test_latex_tables_have_the_columns_that_are_asked_for(stored):
    call("report", "asr.demo", "--output", "out", "--columns", "condition, per")
    table = Path("out/asr.demo.conditions.tex").read_text()
    assert "P(front)" not in table and "Bold: on the front" in table
    assert r"condition & per (min) \\" in table and "seed" in Path("out/asr.demo.replicates.csv").read_text()
    refused = call("report", "asr.demo", "--columns", "perr")
    assert re.match(
        r"'perr' of --columns must be a column of the tables, which are condition, per, .*; the nearest is 'per'\.",
        str(refused.exception),
    )


def test_places_that_cannot_be_written_are_refused_before_any_work(stored, monkeypatch):
    Path("file").write_text("")
    Path("folder").mkdir()
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: pytest.fail("work was done"))
    with pytest.raises(InputError, match=r"--output must name a folder that is there, .*file' is a file"):
        report("asr.demo", output=Path("file"))
    with pytest.raises(InputError, match="--bundle must be a file, but folder is a folder"):
        report("asr.demo", bundle=Path("folder"))


def test_a_disk_that_refuses_is_one_line(stored):
    Path("file").write_text("")
    with pytest.raises(InputError, match=r"^--bundle must name a folder that is there, .*file' is a file\.$"):
        report("asr.demo", bundle=Path("file/it.zip"))
    with pytest.raises(InputError, match=r"x+\.zip must be a place that can be written to, but: "):
        report("asr.demo", bundle=Path("x" * 300 + ".zip"))


def test_a_sweep_with_nothing_complete_says_what_to_do(store):
    store.write([replicate("random", 1, state="running", metrics={})], revision=1)
    with pytest.raises(
        InputError, match=r"No complete replicate of asr\.demo has per and macs_per_frame; see `ponderay st"
    ):
        report("asr.demo")


def test_a_search_without_listed_conditions_is_reported_too(workplace, monkeypatch, stored):
    name = next(name for name, function in find.sweep_functions().items() if function("full").search)
    sweep = find.find_sweep(name)
    numbers = {objective.metric: 1.0 for objective in sweep.objectives}
    replicates = [
        replicate(f"lr={i}", seed, metrics={metric: value + i + seed for metric, value in numbers.items()})
        for i in range(4)
        for seed in (1, 2, 3)
    ]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study(name, tuple(replicates)))
    Store(workplace / "runs" / "mlflow.db", name)
    found = call("report", name, "--bundle", "it.zip")
    assert found.exit_code == 0, found
    assert "│ lr=0" in found.stdout and "│ lr=1" not in found.stdout
    said = f"holds no search of {name}."
    assert said in found.stdout and said in Path(f"runs/reports/{name}/{name}.report.html").read_text()
    assert call("verify", "it.zip").exit_code == 0


@pytest.fixture
def searched(workplace, monkeypatch, stored):
    """25 trials of lm.search; the error follows the step's quantile, the cost the dropout. Each has one replicate."""
    monkeypatch.setattr("orchestrator.scheduler.importance.NUM_GROUPS", 2)
    sweep = find.find_sweep("lm.search")
    space = sweep.search.space
    middle = space["recoder.step.size"].quantile(0.5)
    make_search(
        lambda drawn: (float(drawn["recoder.step.size"] > middle), drawn["dropout.rate"]), 25, space, sweep.name
    )
    trials = read_trials(sweep, read_settings()).trials
    made = [
        replicate(one.condition, 1, metrics=dict(zip(("valid_perplexity", "macs_per_token"), one.values, strict=True)))
        for one in trials
    ]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study(sweep.name, tuple(made)))
    Store(workplace / "runs" / "mlflow.db", sweep.name)
    return made


def test_the_report_of_a_search_says_which_parameters_matter(searched, monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.importance.NUM_GROUPS", 2)
    monkeypatch.setattr("orchestrator.scheduler.importance.NUM_TREES", 16)
    found = call("report", "lm.search", "--bundle", "it.zip")
    assert found.exit_code == 0, found
    trials = r"\(25 trials; R² of unseen trials \d\.\d\d\)\.\n"
    said = rf"Importance for valid_perplexity: recoder.step.size 1.00 \(.* to .*\), dropout.rate 0.00 .* {trials}"
    assert re.search(said, found.stdout)
    folder = Path("runs/reports/lm.search")
    table = (folder / "lm.search.importance.csv").read_text()
    assert table.startswith("parameter,valid_perplexity,valid_perplexity_low,")
    assert 'id="importance-table"' in (folder / "lm.search.report.html").read_text()
    content = json.loads(call("report", "lm.search", "--format", "json").stdout)["importance"]
    assert content["trials"] == 25 and content["parameters"]["dropout.rate"]["macs_per_token"] > 0.9
    with zipfile.ZipFile("it.zip") as archive:
        assert archive.read("tables/lm.search.importance.csv").decode() == table
    assert call("verify", "it.zip").exit_code == 0


def test_the_bundle_of_a_search_has_the_trials_whose_conditions_are_shown(searched, monkeypatch):
    few = Study("lm.search", tuple(searched[:4]))
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: few)
    found = call("report", "lm.search", "--bundle", "it.zip")
    assert "Importance needs 20 complete trials, but there are 4; with a larger `num_trials`" in found.stdout
    with zipfile.ZipFile("it.zip") as archive:
        drawn = json.loads(archive.read("search.json"))["trials"]
        assert "tables/lm.search.importance.csv" not in archive.namelist()
    assert [one["condition"] for one in drawn] == [one.condition for one in searched[:4]]
    assert call("verify", "it.zip").exit_code == 0


def test_many_rows_and_warnings_are_cut_and_that_is_said(stored, monkeypatch):
    monkeypatch.setattr(report_summary, "MAX_ROWS", 1)
    monkeypatch.setattr(report_summary, "MAX_WARNINGS", 1)
    found = call("report", "asr.demo").stdout
    assert sum(line[:1] == "│" for line in found.splitlines()) == 1
    assert "more are on the front or near it; the files list all.\n" in found
    assert found.count("Warning: ") == 1 and "more warnings are in the page.\n" in found


def test_conditions_that_were_run_with_other_settings_are_asked_for_as_they_were_run(store, monkeypatch):
    """An earlier version wrote settings into names; the reference is found under its other name, with --set or not."""
    monkeypatch.setattr(Tracking, "store_report", lambda *_: None)
    for revision, name in enumerate(("surprisal", "random"), start=1):
        metrics = {"per@stochastic": 0.2 + 0.1 * revision, "macs_per_frame@stochastic": 1e6}
        renamed = f"{name},training.num_epochs=3"
        listed = [replicate(renamed, seed, metrics=metrics | {"loss": 1.0 / seed}) for seed in (1, 2, 3)]
        store.write(listed, revision, start_ms=revision)
    for options in ((), ("--set", "training.num_epochs=3"), ("--reference", "random,training.num_epochs=3")):
        found = json.loads(call("report", "asr.demo", *options, "--format", "json").stdout)
        assert {row["b"] for row in found["comparisons"]} == {"random,training.num_epochs=3"}
    other = json.loads(call("report", "asr.demo", "--set", "training.num_epochs=4", "--format", "json").stdout)
    assert other["comparisons"] == []


@pytest.mark.slow
def test_replicates_of_another_machine_are_reported_with_ours(stored, monkeypatch, tmp_path):
    there, joined = tmp_path / "there.zip", tmp_path / "joined.zip"
    record_audit("asr.demo", [Audited("surprisal", "", Finding("blind to targets"))], read_settings())
    assert call("report", "asr.demo", "--bundle", there).exit_code == 0
    monkeypatch.setenv("PONDERAY_RUNS", str(tmp_path / "elsewhere"))
    here = Store(tmp_path / "elsewhere" / "mlflow.db")
    leak = Audited("random", "", Finding("blind to targets", "finding", "the targets", "predictions", 1.0))
    record_audit("asr.demo", [leak], read_settings())
    metrics = small_study().of("random")[0].metrics
    for revision, (condition, seed) in enumerate([("random", 4), ("always_small", 1)], 1):
        here.write([replicate(condition, seed, metrics=metrics)], revision)
    found = call("report", "asr.demo", "--with", there, "--bundle", joined)
    assert found.exit_code == 0, found
    assert "Replicates from there.zip: 9." in found.stdout and leak.sentence in found.stdout
    raw = json.loads(zipfile.ZipFile(joined).read("study.json"))["replicates"]
    assert len({(one["condition"], one["seed"]) for one in raw}) == len(raw) == 11
    assert call("verify", joined).exit_code == 0
    monkeypatch.setenv("PONDERAY_RUNS", str(tmp_path / "nothing ran here"))
    found = call(
        "report", "asr.demo", "--with", joined, "--bundle", tmp_path / "again.zip", "--output", tmp_path / "page"
    )
    assert found.exit_code == 0, found
    again = zipfile.ZipFile(tmp_path / "again.zip").read("study.json")
    assert json.loads(again)["replicates"] == raw and call("verify", tmp_path / "again.zip").exit_code == 0
    assert not (tmp_path / "nothing ran here").exists()
    refused = call("report", "asr.demo", "--with", there, "--where", "seed=1")
    assert isinstance(refused.exception, InputError) and "--where filters" in str(refused.exception)
