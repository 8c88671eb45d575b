"""Claims read from TOML: the same as those built in Python, with the same verdicts; and files that are wrong."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces import claim_file
from search_spaces.claim import (
    Claim,
    Fact,
    FrontClaim,
    JointClaim,
    NumberClaim,
    Place,
    Published,
    Setting,
    Source,
    StatementClaim,
    TrendClaim,
)
from search_spaces.claim_file import claims_of
from search_spaces.sweep import Sweep
from tests.integration.sweeps import tiny
from tests.orchestrator.recorded import replicate
from trainables.errors import InputError

WHOLE = """
source = "Somebody 2026 (arXiv:2601.00001)"

[setting.paper]
title = "at the paper's sizes"
requires = { num_epochs = 4, bad_input = false, "first.level" = 0.5 }
free = ["sleep_s"]
fact = { text = "half the cost", place = { condition = "a", metric = "cost@plain" }, value = 0.5, tolerance = 0.01 }

[[number]]
id = "mine.table1.a"
sweeps = ["tiny.sweep", "tiny.other"]
condition = "a"
metric = "error@plain"
scale = 100
mean = 12
std = 0.4
n = 5
margin = 0.6
margin_reason = "the last digit that is printed"
direction = "minimize"
place = "Table 1, a"
setting = "paper"
objective = "error"
row = "a"
note = "Read off."
computed = true

[[number]]
condition = "a"
metric = "error"
over = { condition = "b", metric = "cost@plain", scale = 2 }
mean = 0.5
margin = 0.1
direction = "none"
source = "Another 2025"
place = "Table 2"
bar = "its data is not known"

[[statement]]
text = "A errs less than b."
left = { condition = "a", metric = "error@plain" }
relation = "below"
right = { condition = "b", metric = "error@plain" }
place = "Table 1"

[[statement]]
text = "A costs one half."
left = { condition = "a", metric = "cost@plain" }
relation = "same"
right = 0.5
margin = 0.1
margin_reason = "a fifth"
place = "Section 3"
note = "In words."
"""
SOURCE = "Somebody 2026 (arXiv:2601.00001)"
PAPER = Setting(
    "at the paper's sizes",
    {"num_epochs": "4", "bad_input": "False", "first.level": "0.5"},
    ("sleep_s",),
    Fact("half the cost", Place("a", "cost", "plain"), 0.5, 0.01),
)
OWN = Setting("with the settings of the sweep")
BUILT: tuple[Claim, ...] = (
    NumberClaim(
        id="mine.table1.a",
        sweeps=("tiny.sweep", "tiny.other"),
        place=Place("a", "error", "plain", 100.0),
        published=Published(12.0, 0.4, 5, is_computed=True),
        margin=0.6,
        margin_reason="the last digit that is printed",
        source=Source(SOURCE, "Table 1, a"),
        setting=PAPER,
        objective="error",
        row="a",
        note="Read off.",
    ),
    NumberClaim(
        id="claims.number.2",
        sweeps=("tiny.sweep",),
        place=Place("a", "error", over=Place("b", "cost", "plain", 2.0)),
        published=Published(0.5),
        margin=0.1,
        margin_reason="",
        source=Source("Another 2025", "Table 2"),
        setting=OWN,
        direction="none",
        bar="its data is not known",
    ),
    StatementClaim(
        id="claims.statement.1",
        sweeps=("tiny.sweep",),
        text="A errs less than b.",
        left=Place("a", "error", "plain"),
        relation="below",
        right=Place("b", "error", "plain"),
        source=Source(SOURCE, "Table 1"),
        setting=OWN,
    ),
    StatementClaim(
        id="claims.statement.2",
        sweeps=("tiny.sweep",),
        text="A costs one half.",
        left=Place("a", "cost", "plain"),
        relation="same",
        right=0.5,
        source=Source(SOURCE, "Section 3"),
        setting=OWN,
        margin=0.1,
        margin_reason="a fifth",
        note="In words.",
    ),
)


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    file = tmp_path / "claims.toml"
    file.write_text(WHOLE)
    return tiny({"a": {"x": 0.25}, "b": {"x": 0.75}}, claims=str(file))


def study(errors: tuple[float, ...] = (0.12, 0.121, 0.119, 0.12, 0.1205)) -> Study:
    runs = []
    for seed, error in enumerate(errors, 1):
        runs.append(replicate("a", seed, metrics={"error@plain": error, "cost@plain": 0.5}))
        runs.append(replicate("b", seed, metrics={"error@plain": error + 0.05 + seed / 1000, "cost@plain": 0.7}))
    return Study("tiny.sweep", tuple(runs))


def test_what_is_read_is_what_would_be_built(sweep: Sweep) -> None:
    assert claims_of(sweep) == BUILT


def test_the_verdicts_are_those_of_the_same_claims_built_in_python(sweep: Sweep) -> None:
    question = Question.of(sweep)
    found = judge(study(), question)
    built = judge(study(), replace(Question.of(replace(sweep, claims="")), claims=BUILT))
    assert repr(found) == repr(built)
    findings = [verdict.finding for verdict in found]
    assert findings == [Finding.reproduced, Finding.not_comparable, Finding.reproduced, Finding.reproduced]


def test_claims_of_other_sweeps_are_left_out_and_the_small_size_has_all(sweep: Sweep) -> None:
    claims = {name: claims_of(replace(sweep, name=name)) for name in ("tiny.third", "tiny.other", "tiny.sweep.smoke")}
    assert [claim.id for claim in claims["tiny.third"]] == [claim.id for claim in BUILT[1:]]
    assert claims["tiny.other"][0] == BUILT[0]
    assert claims["tiny.sweep.smoke"] == BUILT


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('condition = "a"\nmetric = "error@plain"', 'condition = "c"\nmetric = "error@plain"', "no condition 'c'"),
        ('metric = "error@plain"\nscale', 'metric = "err@plain"\nscale', "No replicate has reported err@plain, but er"),
        ('metric = "error@plain"\nscale', 'metric = "error@test"\nscale', "reported error@test, but error@plain"),
    ],
)
def test_an_unknown_condition_metric_or_evaluation_is_told_with_the_verdict(
    sweep: Sweep, old: str, new: str, reason: str
) -> None:
    assert old in WHOLE
    Path(sweep.claims).write_text(WHOLE.replace(old, new))
    verdict = judge(study(), Question.of(sweep))[0]
    assert verdict.finding is Finding.not_comparable and reason in verdict.reason


NUMBER = '[[number]]\ncondition = "a"\nmetric = "e"\nmean = 1\nmargin = 1\ndirection = "minimize"\nplace = "p"\n'
STATEMENT = (
    '[[statement]]\ntext = "t"\nleft = {condition = "a", metric = "e"}\nrelation = "below"\nright = 1\nplace = "p"\n'
)
TOP = 'source = "s"\n'
SPREAD = STATEMENT.replace("right = 1", 'right = {condition = "b", metric = "e"}\nof = "spread"')
FRONT = (
    '[[front]]\ntext = "t"\ncondition = "a"\nothers = ["b"]\nmetrics = ["e@x", "c"]\n'
    'directions = ["minimize", "maximize"]\nplace = "p"\n'
)
TREND = (
    '[[trend]]\ntext = "t"\nmetric = "e@x"\nconditions = ["a", "b", "c"]\nrelation = "falls"\nscale = 2\nplace = "p"\n'
)
PART = '[[joint.part]]\nleft = {condition = "a", metric = "e"}\nrelation = "above"\nright = 2\n'
JOINT = '[[joint]]\ntext = "t"\nplace = "p"\nnote = "n"\n' + PART


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have tables [[number]] or [[statement]] or [[joint]] or [[front]] or [[trend]], but has none."),
        (
            TOP + SPREAD.replace("below", "same"),
            "statement 1, `relation` of spread must be below or above, and `right`",
        ),
        (TOP + SPREAD + "margin = 1\n", "statement 1, `margin` of a spread must be left out, but is 1."),
        (TOP + STATEMENT + 'of = "every"\n', "statement 1, `relation` of every must be same, and `right` a number"),
        (TOP + JOINT, "joint 1, `part` "),
        (TOP + JOINT + PART.replace("above", "same"), "joint 1, `margin` must be above 0 where `relation` is same"),
        (TOP + JOINT + PART.replace("2", "true"), "joint 1, `part.1.right` must be a valid number, but is Tru"),
        (TOP + FRONT.replace(', "maximize"', ""), "front 1, `directions` must be one for each of the 2 `metrics`, but"),
        (TOP + FRONT.replace('"b"', '"a"'), "front 1, `others` must not have the `condition` 'a' itself."),
        (TOP + TREND.replace('"c"', '"a"'), "trend 1, `conditions` must be each once, but are a, b, a."),
        (TOP + TREND.replace(', "c"', ""), "trend 1, `conditions` "),
        ("[[number]\n", "must be TOML, but: "),
        (TOP + "[[numbers]]\n", "`numbers` is no field."),
        (TOP + NUMBER.replace("mean = 1\n", ""), "number 1, `mean` must be given."),
        (
            TOP + NUMBER + NUMBER.replace("mean = 1", 'mean = "1"'),
            "number 2, `mean` must be a valid number, but is '1'",
        ),
        (TOP + NUMBER.replace("mean = 1", "mean = nan"), "number 1, `mean` must be a finite number, but is nan."),
        (
            TOP + NUMBER.replace("mean = 1", "mean = 2026-01-01"),
            "number 1, `mean` must be a valid number, but is '2026",
        ),
        (TOP + NUMBER + "std = -1\nn = 3\n", "number 1, `std` must be greater than or equal to 0, but is -1."),
        (TOP + NUMBER + "std = 1\n", "number 1, `n` must be at least 2, the seeds behind `std`, but none is given."),
        (TOP + NUMBER + "std = 1\nn = 1\n", "number 1, `n` must be at least 2, the seeds behind `std`, but is 1."),
        (TOP + NUMBER + "n = 2.5\n", "number 1, `n` must be a valid integer, but is 2.5."),
        (
            TOP + NUMBER.replace('"minimize"', '"down"'),
            "number 1, `direction` must be 'minimize', 'maximize' or 'none'",
        ),
        (TOP + NUMBER.replace('"e"', '"e@"'), "number 1, `metric` must be text of the form "),
        (TOP + NUMBER + "[number.over]\nmetric = 'e'\n", "number 1, `over.condition` must be given."),
        (TOP + NUMBER + "scale = 0\n", "number 1, `scale` must be greater than 0, but is 0."),
        (TOP + NUMBER + "colour = 1\n", "number 1, `colour` is no field."),
        (NUMBER, "number 1, `source` must be given here or at the top of the file."),
        (
            TOP + NUMBER + 'setting = "x"\n',
            "number 1, `setting` must be one of the file's settings (none), but is 'x'.",
        ),
        (TOP + NUMBER + 'sweeps = "a"\n', "number 1, `sweeps` must be a valid array, but is 'a'."),
        (
            TOP + STATEMENT.replace("below", "less"),
            "statement 1, `relation` must be 'below', 'above' or 'same', but is",
        ),
        (
            TOP + STATEMENT.replace("below", "same"),
            "statement 1, `margin` must be above 0 where `relation` is same, but",
        ),
        (
            TOP + STATEMENT.replace("right = 1", "right = true"),
            "statement 1, `right` must be a valid number, but is Tru",
        ),
        (
            TOP + STATEMENT.replace("right = 1", "right = {metric = 'e'}"),
            "statement 1, `right.condition` must be given.",
        ),
        (
            TOP + STATEMENT.replace("right = 1", 'right = {condition = "a", metric = "e"}'),
            "statement 1, `right` must differ from `left`.",
        ),
        (TOP + '[setting.x]\ntitle = "t"\nrequires = {y = [[1]]}\n' + NUMBER, "setting x, `requires.y` must be "),
        (
            TOP + '[setting.x]\ntitle = "t"\nrequires = {y = []}\n' + NUMBER,
            "setting x, `requires.y` must be text, a number, true or false, or an array of such, but is ()",
        ),
        (
            TOP + '[setting.x]\nlike = "y"\n' + NUMBER,
            "setting x, `like` must be one of the file's settings (x), but is 'y'.",
        ),
        ("table = 1\n", "`table` must be a valid array, but is 1."),
        (TOP + "[[table]]\nrow = []\n", "table 1, `row` is no field."),
        (TOP + NUMBER + "margin_share = 0.1\n", "number 1, `margin_share` must be left out where `margin` is given."),
        (TOP + NUMBER.replace("margin = 1\n", ""), "number 1, `margin` must be given."),
        (TOP + NUMBER.replace("mean = 1", "mean = [1, 2, 3]"), "number 1, `mean` "),
        (TOP + NUMBER.replace("mean = 1", "mean = [1, 2]"), "number 1, `n` must be at least 2, the seeds behind `std`"),
        (
            TOP + NUMBER.replace("mean = 1", "mean = [1, 2]\nstd = 2\nn = 3"),
            "number 1, `std` must be left out where `mean` has it, as in [12.3, 0.4].",
        ),
        (
            TOP + STATEMENT + "margin = 1\nmargin_test = {t = 2, n = 4, stds = [1, 1]}\n",
            "statement 1, `margin_test` must be left out where `margin` is given.",
        ),
        (
            TOP + STATEMENT + "margin_test = {t = 2, n = 4, stds = [1]}\n",
            "statement 1, `margin_test.stds",
        ),
        (TOP + FRONT + "scales = [1]\n", "front 1, `scales` must be one for each of the 2 `metrics`, but are 1."),
        (
            TOP + FRONT.replace('["b"]', '[{condition = "b", evaluation = "y"}]'),
            "front 1, `evaluation` of 'b' must be left out where the metric 'e@x' has one.",
        ),
        (
            TOP + TREND.replace('"c"', '{condition = "c"}'),
            "trend 1, `conditions.2.evaluation` must be given.",
        ),
        (
            TOP + NUMBER + 'id = "i"\n' + STATEMENT + 'id = "i"\n',
            "number 1, `id` must be of one entry alone, but 'i' is",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence_with_file_entry_and_field(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "claims.toml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        claim_file.read(file, "tiny.sweep")
    said = str(error.value)
    assert said.startswith(f"{file}") and said.removeprefix(f"{file}").lstrip(": ").startswith(message)
    assert "\n" not in said and said.endswith(".")


def test_a_file_must_be_there_and_be_text_and_be_named_absolutely(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absolute path, but got 'claims\.toml'; write str\(Path\(__file__\)"):
        claim_file.read(Path("claims.toml"), "tiny.sweep")
    with pytest.raises(InputError, match=r"none\.toml cannot be read: No such file or directory\."):
        claim_file.read(tmp_path / "none.toml", "tiny.sweep")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory\."):
        claim_file.read(tmp_path, "tiny.sweep")
    (tmp_path / "it.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=re.escape("it.toml must be TOML, but: ")):
        claim_file.read(tmp_path / "it.toml", "tiny.sweep")


def test_spreads_what_holds_in_every_replicate_joint_claims_fronts_and_trends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "claims.toml"
    always = STATEMENT.replace("below", "same") + 'of = "every"\n'
    file.write_text(TOP + SPREAD + always + JOINT + PART.replace("2", "3") + FRONT + TREND)
    spread, every, joint, front, trend = claim_file.read(file, "tiny.sweep")
    assert isinstance(every, StatementClaim)
    assert (every.of, every.relation, every.right, every.margin) == ("every", "same", 1.0, 0.0)
    assert isinstance(spread, StatementClaim) and isinstance(joint, JointClaim)
    assert isinstance(front, FrontClaim) and isinstance(trend, TrendClaim)
    assert (spread.of, spread.right) == ("spread", Place("b", "e"))
    assert [(part.relation, part.right, part.of) for part in joint.parts] == [
        ("above", 2, "mean"),
        ("above", 3, "mean"),
    ]
    assert (joint.id, joint.note, {part.id for part in joint.parts}) == ("claims.joint.1", "n", {"claims.joint.1"})
    assert front.point == (Place("a", "e", "x"), Place("a", "c"))
    assert (front.others, front.directions) == (((Place("b", "e", "x"), Place("b", "c")),), ("minimize", "maximize"))
    assert trend.places == tuple(Place(name, "e", "x", 2.0) for name in "abc") and trend.relation == "falls"
