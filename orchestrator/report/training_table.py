"""Whether conditions still got better when training ended: a table, the mark that they bear in others, sentences."""

from collections.abc import Sequence
from typing import Final

from orchestrator.report.answers import Answers
from orchestrator.report.numerals import between, decimals, signed, with_interval
from orchestrator.report.table import INTERVAL, Column, Table
from orchestrator.results.improving import ending_of
from orchestrator.results.lookup import place_of
from orchestrator.results.points import Point
from orchestrator.results.study import Study
from orchestrator.statistics.improving import LEAST_IN_LAST_THIRD, Ending, Standing
from search_spaces.known_names import known_names

MARK: Final = "†"
WORDS: Final = {"improving": "still improving", "ended": "not shown to improve", "not known": "not known"}
MOST_NAMED: Final = 5


def training_table(answers: Answers) -> Table:
    """Every point whose curves of validation are known: how they ended, and what one more tenth would bring.

    Raw columns: condition, evaluation, metric (that selects the checkpoint), direction, n, standing (improving, ended,
    not known), change (by one more tenth of training), low and high (95 %).
    """
    points = [one for one in answers.front.points if _selecting(answers.study, one)]
    found = [ending_of(answers.study, one.condition, one.evaluation) for one in points]
    return Table(
        name=f"{answers.question.sweep}.training",
        title=f"{answers.question.sweep}: when training ended",
        columns=("condition", "evaluation", "metric", "direction", "n", "standing", "change", "low", "high"),
        rows=tuple(
            (
                one.condition,
                one.evaluation,
                *(_selecting(answers.study, one) or ()),
                *(e.n, e.standing),
                e.change,
                *e.interval,
            )
            for one, e in zip(points, found, strict=True)
        ),
        printed=_printed(answers.study, points, found) if points else (),
        notes=(
            "Next tenth: by how much the metric that selects the checkpoint would move with a tenth more of training, "
            "by its slope over the last tenth; interval over seeds.",
        ),
    )


def marked(study: Study, name: str) -> str:
    """The name of a point, with a mark where the condition still got better when training ended."""
    return f"{name} {MARK}" if standing_of(study, name) == "improving" else name


def standing_of(study: Study, name: str) -> Standing:
    """How a point's training ended."""
    return ending_of(study, *place_of(study, name)).standing if study.validations.curves else "not known"


def training_sentences(study: Study, names: Sequence[str]) -> tuple[str, ...]:
    """Which of these points are marked, and of which it is not known; nothing where all have ended.

    Nothing either of results that Ponderay did not make.

    Args:
        names: of points.
    """
    if not any(one.key for one in study.replicates):
        return ()
    if not study.validations.curves:
        return ("Whether training was long enough is not known: there are no curves of validation by seed.",)
    by_standing: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        by_standing.setdefault(standing_of(study, name), []).append(name)
    found = []
    if improving := by_standing.get("improving"):
        found.append(
            f"{MARK} Still improving when training ended: {known_names(improving, most=MOST_NAMED)}. A comparison with "
            f"{'it' if len(improving) == 1 else 'one of them'} is of a race that was stopped."
        )
    if unknown := by_standing.get("not known"):
        found.append(
            f"Whether training was long enough is not known of {known_names(unknown, most=MOST_NAMED)}: that takes "
            f"{LEAST_IN_LAST_THIRD} validations in the last third of training, of two seeds."
        )
    return tuple(found)


def _selecting(study: Study, point: Point) -> tuple[str, str] | None:
    found = study.validations.selecting(point.condition, point.evaluation)
    return (found.metric, found.direction) if found else None


def _printed(study: Study, points: Sequence[Point], found: Sequence[Ending]) -> tuple[Column, ...]:
    metrics = tuple(selecting[0] for one in points if (selecting := _selecting(study, one)))
    changes = [
        (signed(e.change, digits), between(e.interval, digits))
        for e in found
        for digits in [decimals([with_interval(e.change, e.interval)])]
    ]
    return (
        Column("condition", tuple(one.name for one in points), "condition", False),
        Column("selected by", metrics, "metric", False),
        Column("next tenth", tuple(change for change, _ in changes), "change"),
        Column(INTERVAL, tuple(interval for _, interval in changes), "low"),
        Column("n", tuple(str(e.n) for e in found), "n"),
        Column("when training ended", tuple(WORDS[e.standing] for e in found), "standing", False),
    )
