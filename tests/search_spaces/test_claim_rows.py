"""Tables of numbers in a file of claims: rows, forms and values make the entries that would be written out."""

import math
import re
from pathlib import Path

import pytest

from search_spaces import claim_file
from search_spaces.claim import FrontClaim, JointClaim, NumberClaim, Place, StatementClaim, TrendClaim
from trainables.errors import InputError

DOCUMENT = Path(__file__).parents[2] / "docs" / "claims.md"

TABLES = """
source = "Somebody 2026"

[values]
note = ""
end = ""
padded = "Counts padding."

[setting.small]
title = "on a laptop"
requires = { "data.kind" = "timit", size = 4, labels = ["a", 2, true] }
[setting.large]
like = "small"
requires = { size = 8 }

[form.number]
id = "t.{key}.{what}{end}"
condition = "{ours}"
margin = 0.5
direction = "minimize"
place = "Table 2, {name}"
note = "{note} {padded}"
row = "{name}"

[[table]]
values.sweeps = ["one"]
rows = [
  { name = "random", key = "r", ours = "random", per = [20.5, 0.3], flops = 6 },
  { name = "big only", key = "b", ours = "big", per = [20.1, 0.2], flops = 7.5, note = "Alone.", also = [
    { end = ".two", sweeps = ["two"], ours = "wide" },
  ] },
]
[[table.number]]
like = "number"
id = "t.{key}.error{end}"
sweeps = "{sweeps}"
metric = "per@test"
mean = "{per}"
n = 5
setting = "small"
objective = ""
[[table.number]]
like = "number"
id = "t.{key}.cost{end}"
sweeps = "{sweeps}"
metric = "flops"
mean = "{flops}"
margin = 0.1
setting = "large"

[[table]]
values.left = "a"
values.this = { condition = "{left}", metric = "per@test" }
[[table.statement]]
id = "alone"
text = "A {left} is no worse."
left = "{this}"
relation = "below"
right = { condition = "b", metric = "per@test" }
margin_test = { t = 1.943, n = 4, stds = [1.12, 4.06] }
place = "section 5"
"""
ONE_ROW = """
source = "s"
[form.number]
condition = "a"
metric = "e"
margin = 1
direction = "none"
place = "p"
[[table]]
number = [{ like = "number", mean = "{mean}" }]
rows = [{ mean = 1 }]
"""


def read(folder: Path, text: str) -> list:
    file = folder / "claims.toml"
    file.write_text(text)
    return list(claim_file.read(file, "tiny.sweep"))


def test_each_row_makes_each_entry_and_numbers_come_first(tmp_path: Path) -> None:
    claims = read(tmp_path, TABLES)
    ids = ["t.r.error", "t.r.cost", "t.b.error", "t.b.cost", "t.b.error.two", "t.b.cost.two", "alone"]
    assert [claim.id for claim in claims] == ids
    error, cost = claims[2:4]
    assert isinstance(error, NumberClaim) and isinstance(cost, NumberClaim)
    assert (error.published.mean, error.published.std, error.published.n) == (20.1, 0.2, 5)
    assert (cost.published.mean, cost.published.std, cost.published.n) == (7.5, None, None)
    assert (error.margin, cost.margin, error.place, cost.place) == (
        0.5,
        0.1,
        Place("big", "per", "test"),
        Place("big", "flops"),
    )
    assert (error.objective, cost.objective, error.row, error.source.place) == (
        "",
        "flops",
        "big only",
        "Table 2, big only",
    )
    assert [claim.note for claim in claims[1:3]] == ["Counts padding.", "Alone. Counts padding."]


def test_a_row_that_stands_elsewhere_too_differs_in_what_it_says(tmp_path: Path) -> None:
    claims = {claim.id: claim for claim in read(tmp_path, TABLES)}
    own, other = claims["t.b.error"], claims["t.b.error.two"]
    assert (own.sweeps, other.sweeps) == (("one",), ("two",))
    assert (own.place.condition, other.place.condition) == ("big", "wide")
    assert own.published == other.published and own.source == other.source


def test_settings_are_like_each_other_and_take_one_of_several_values(tmp_path: Path) -> None:
    small, large = (claim.setting for claim in read(tmp_path, TABLES)[:2])
    assert (small.requires, large.requires) == (
        {"data.kind": "timit", "size": "4"},
        {"data.kind": "timit", "size": "8"},
    )
    assert small.any_of == large.any_of == {"labels": ("a", "2", "True")} and large.title == "on a laptop"


def test_a_margin_is_what_the_sources_own_test_would_have_shown(tmp_path: Path) -> None:
    """A t-test of two groups of 4, pooled, of standard deviations of the population."""
    (claim,) = (one for one in read(tmp_path, TABLES) if isinstance(one, StatementClaim))
    pooled = math.sqrt((1.12**2 * 4 / 3 + 4.06**2 * 4 / 3) / 2)
    assert claim.margin == pytest.approx(1.943 * pooled * math.sqrt(2 / 4))
    assert (claim.left, claim.text) == (Place("a", "per", "test"), "A a is no worse.")


def test_a_margin_may_be_a_share_of_the_number(tmp_path: Path) -> None:
    text = ONE_ROW.replace("margin = 1", "margin_share = 0.15").replace("mean = 1 ", "mean = -40 ")
    assert read(tmp_path, text)[0].margin == pytest.approx(6)


def test_joint_claims_fronts_and_trends_are_made_for_each_row_too(tmp_path: Path) -> None:
    text = """
source = "s"
[[table]]
values.b = { condition = "b", evaluation = "y" }
rows = [{ at = "x" }, { at = "z" }]
[[table.joint]]
text = "{at}"
part = [
  { left = { condition = "a", metric = "e@{at}" }, relation = "below", right = 1 },
  { left = { condition = "a", metric = "e" }, relation = "above", right = 0 },
]
place = "p"
[[table.front]]
text = "t"
condition = { condition = "a", evaluation = "{at}" }
others = ["{b}", { condition = "a", evaluation = "y" }, "c"]
metrics = ["e", "cost"]
scales = [100, 1e-6]
directions = ["minimize", "maximize"]
place = "p"
[[table.trend]]
text = "t"
metric = "e"
conditions = ["a", "{b}", { condition = "a", evaluation = "{at}" }]
relation = "rises"
place = "p"
"""
    joint, front, trend, *second = read(tmp_path, text)
    assert isinstance(joint, JointClaim) and isinstance(front, FrontClaim) and isinstance(trend, TrendClaim)
    assert [part.left for part in joint.parts] == [Place("a", "e", "x"), Place("a", "e")]
    assert front.point == (Place("a", "e", "x", 100.0), Place("a", "cost", "x", 1e-6))
    assert front.others[0][0] == Place("b", "e", "y", 100.0) and front.others[2][1] == Place("c", "cost", "", 1e-6)
    assert trend.places == (Place("a", "e"), Place("b", "e", "y"), Place("a", "e", "x"))
    assert second[0].text == "z" and second[2].places[2] == Place("a", "e", "z")
    assert [claim.id for claim in second] == [f"claims.table.1.row.2.{kind}.1" for kind in ("joint", "front", "trend")]


def test_the_order_of_tables_is_that_of_the_file_and_entries_of_no_table_come_before(tmp_path: Path) -> None:
    statement = 'text = "{}"\nleft = {{ condition = "a", metric = "e" }}\nrelation = "below"\nright = 1\nplace = "p"\n'
    tables = "".join(f"[[table]]\n[[table.statement]]\n{statement.format(name)}" for name in "cb")
    claims = read(tmp_path, f'source = "s"\n{tables}[[statement]]\n{statement.format("a")}')
    assert [claim.text for claim in claims] == ["a", "c", "b"]


def test_braces_of_a_file_without_values_are_braces(tmp_path: Path) -> None:
    text = ONE_ROW.partition("[[table]]")[0] + '[[number]]\nlike = "number"\ncondition = "a{b}"\nmean = 1\n'
    assert read(tmp_path, text)[0].place.condition == "a{b}"
    assert read(tmp_path, text + '[values]\nb = "c"\n')[0].place.condition == "ac"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{ mean = 1 }",
            "{ maen = 1 }",
            "table 1, row 1, number 1, `mean` has {mean}, which must be one of the values (m",
        ),
        ("{ mean = 1 }", "{ mean = 1, std = 2 }", "table 1, row 1, `std` is used by no entry of the table."),
        ("rows =", "values.n = 4\nrows =", "table 1, `values.n` is used by no entry of the table."),
        (
            "{ mean = 1 }",
            '{ mean = "{mean}" }',
            "table 1, row 1, number 1, `mean` has {mean}, which must be one of the v",
        ),
        ("{ mean = 1 }", '{ mean = "x" }', "table 1, row 1, number 1, `mean` must be a valid number, but is 'x'."),
        ("{ mean = 1 }", "{ mean = 1, also = 2 }", "table 1, row 1, `also` must be an array of tables, but is 2."),
        (
            "{ mean = 1 }",
            "{ mean = 1, also = [{ x = 2 }] }",
            "table 1, row 1, also 1, `x` is used by no entry of the tab",
        ),
        ('place = "p"', 'place = "p {mean}"\nnote = "{mean}"', "table 1, row 1, number 1, `note` "),
        (
            '{ like = "number"',
            '{ like = "numbers"',
            "table 1, row 1, number 1, `like` must be one of the file's forms (n",
        ),
        (
            "[form.number]",
            '[form.number]\nlike = "number"',
            "table 1, row 1, number 1, `like` must be one of the file's f",
        ),
        (
            'place = "p"',
            'place = "p {mean}"\nrow = "{values}"',
            "table 1, row 1, number 1, `row` has {values}, which must",
        ),
        (
            "{ mean = 1 }",
            "{ mean = [1, 2] }",
            "table 1, row 1, number 1, `n` must be at least 2, the seeds behind `std`",
        ),
        ("rows = [{ mean = 1 }]", "rows = 1", "table 1, `rows` must be a valid array, but is 1."),
        (
            'place = "p"',
            'place = "p {mean}"',
            "table 1, row 1, number 1, `place` has {mean} in a text, which must be a ",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in ONE_ROW
    text = ONE_ROW.replace(old, new)
    if "in a text" in message:
        text = text.replace("{ mean = 1 }", "{ mean = [1, 2] }")
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    sentence = str(error.value).removeprefix(f"{tmp_path / 'claims.toml'}: ")
    assert sentence.startswith(message) and "\n" not in sentence and sentence.endswith(".")


def test_the_table_of_the_document_is_read_as_it_stands_there(tmp_path: Path) -> None:
    (text,) = (block for block in re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.S) if "[[table]]" in block)
    claims = {claim.id: claim for claim in read(tmp_path, text)}
    assert list(claims) == ["darts.few.error", "darts.few.cost", "darts.many.error", "darts.many.cost"]
    many = claims["darts.many.error"]
    assert (many.published.mean, many.published.std, many.published.n) == (0.013, 0.002, 5)
    assert many.margin == pytest.approx(0.0013) and many.note == "Counted by hand. By two persons."
    assert claims["darts.few.cost"].direction == "none" and claims["darts.few.cost"].note == "Counted by hand."
