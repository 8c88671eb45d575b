"""Makes RESULTS.md and the pages in docs/results/ from bundles of raw results and the notes beside them.

`python -m evidence.make_page` writes the pages and a picture of each front, and removes pages that nothing makes any
more. With --check it writes nothing: it verifies every bundle, and names each page that is not what the bundles and
notes give.

A study is `NAME.zip`, which `ponderay report SWEEP --bundle evidence/NAME.zip` wrote, and `NAME.md`: a title, which is
the question; how it was asked; a line `{answers}`; lines that ask for further tables (`metric_tables`); and what was
learnt. The first words in bold at the start of a line are the answer: RESULTS.md has them beside the title. Links of a
note lead from docs/results/. `benchmarks.md` becomes a page as it is. Other notes, such as the plan, are read in
evidence/.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image

from evidence.metric_tables import ASKED, Family, asked_table, p_values
from orchestrator.published.judge import statement_p_values
from orchestrator.published.verdict import Finding
from orchestrator.report.answers import Answers, answer
from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.records import parse, read_question, read_search, read_study
from orchestrator.report.bundle.verify import ONE_FAMILY, search_tables, verify
from orchestrator.report.bundle.write import SEARCH
from orchestrator.report.claim_table import claim_table
from orchestrator.report.comparison_table import comparison_table, equal_cost_table
from orchestrator.report.condition_table import condition_table
from orchestrator.report.front_files import draw_front
from orchestrator.report.table import INTERVAL, Table, to_markdown
from orchestrator.report.training_table import training_table
from orchestrator.results.question import Question
from trainables.errors import InputError

HERE = Path(__file__).parent
BENCHMARKS = "benchmarks.md"
ANSWERS = "{answers}"
COMPARED = {"condition", "against", "metric", "difference", INTERVAL, "p (Holm)", "answer", "n needed", "warnings"}
CLAIMED = {"claim", "verdict", "published", "ours", "difference", INTERVAL, "margin", "p", "reason", "source"}
ANSWER = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE | re.DOTALL)
"""Words in bold that begin a line of a note."""

NOT_AGAIN = ("Mean ± sample", "Bold:", "Smallest shown:", "Of conditions that do not cost the same", "Next tenth:")
"""How notes begin that every table of a kind has."""

HEAD = """\
# Results

Each row is a study: the question, the answer, and the number of seeds that each condition has. The question leads to
the page of the study, with its tables, its figure, how it was made, and what it does not show. Disappointing answers
are here too.

{studies}

[The plan](evidence/plan.md) says which studies were chosen before they ran, what each asks, and what changed later.
[Benchmarks](docs/results/benchmarks.md) compare speed with a peer or a floor, and report trials with faults.

## How to read the tables

- A point of an error rate is one hundredth: .640 is 1.0 points less than .650.
- "Not shown" means that the test does not show a difference. It does not mean that two conditions are equal.
- Some conditions do not cost the same. "Front there" is the error that the interpolated front of the other conditions
  has at the cost of the condition. "P(better)" is how likely the condition is better than that front
  ([docs/statistics.md](docs/statistics.md#two-conditions)).
- A study has one test for all its comparisons, which is chosen before the study runs. p is adjusted for all tests of a
  page. Bundles of an older format (5 and less) adjust p in each table by itself, and pair their tables of differences
  by seed.

## How the pages are made

`make results` makes this page and those in [docs/results/](docs/results) from the bundles of raw replicates in
[evidence/](evidence) and from the note beside each bundle. An answer above is the first text in bold of its note.
`ponderay verify evidence/NAME.zip` makes the tables of a bundle again and compares them.
"""

LINKS = "[All results](../../RESULTS.md), and [how to read the tables](../../RESULTS.md#how-to-read-the-tables)."


def main() -> int:
    """Writes the pages, or with --check compares them."""
    names = sorted(file.stem for file in HERE.glob("*.zip"))
    made = pages(names)
    stale = {path for path in (HERE.parent / "docs" / "results").glob("*") if path not in made}
    if "--check" not in sys.argv[1:]:
        for name in names:
            picture = HERE / f"{name}.png"
            draw_front(_answers(_members(name)), (), HERE / f"{name}.html", picture)
            (HERE / f"{name}.html").unlink()
            # by a palette it takes half of the bytes, which every clone and every job carries
            Image.open(picture).convert("RGB").quantize(dither=Image.Dither.NONE).save(picture, optimize=True)
        for path in stale:
            path.unlink()
        for path, text in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    different = [name for name in names if verify(HERE / f"{name}.zip").differences]
    written = {path: path.read_text(encoding="utf-8") if path.exists() else None for path in made}
    changed = stale | {path for path, text in made.items() if written[path] != text}
    different += sorted(path.relative_to(HERE.parent).as_posix() for path in changed)
    print(f"Not what the bundles give: {', '.join(different)}" if different else f"{len(names)} bundles: all equal")
    return 1 if different else 0


def pages(names: Sequence[str]) -> dict[Path, str]:
    """The text of every page, by where it is written."""
    folder = HERE.parent / "docs" / "results"
    rows = "\n".join(map(_row, names))
    made = {
        HERE.parent / "RESULTS.md": HEAD.replace("{studies}", f"| question | answer | seeds |\n|---|---|---|\n{rows}")
    }
    if (HERE / BENCHMARKS).exists():
        made[folder / BENCHMARKS] = (HERE / BENCHMARKS).read_text(encoding="utf-8")
    return made | {folder / f"{name}.md": study(name) for name in names}


def _row(name: str) -> str:
    """A study in RESULTS.md: its question, which leads to its page, its answer, and how many seeds conditions have."""
    note, study = _note(name), read_study(_members(name)["study.json"])
    complete = Counter(replicate.condition for replicate in study.replicates if replicate.state == "complete")
    seeds = sorted(complete[condition] for condition in study.conditions)
    count = f"{seeds[0]} to {seeds[-1]}" if seeds[0] < seeds[-1] else f"{seeds[0]}"
    return f"| [{_title(note)}](docs/results/{name}.md) | {_answer_in_bold(name, note)} | {count} |"


def study(name: str) -> str:
    """The page of a study: its note, with what its bundle says in the places that ask for it."""
    manifest, members = read_bundle(HERE / f"{name}.zip")
    read, question, note = read_study(members["study.json"]), read_question(members["question.json"]), _note(name)
    objectives, asked = question.objectives, ASKED.findall(note)
    families = [Family()] * len(asked)
    if manifest.format < ONE_FAMILY:
        found = answer(read, question, None)
    else:
        of_tables = [p_values(read, objectives, kind, text, question.test) for kind, text in asked]
        found = answer(read, question, [p for own in of_tables for p in own])
        of_page = [*(one.p for one in found.comparisons), *statement_p_values(read, question)]
        for i in range(len(asked)):
            others = [p for own in (of_page, *of_tables[:i], *of_tables[i + 1 :]) for p in own if not math.isnan(p)]
            families[i] = Family(question.test, tuple(others))
    made = (
        to_markdown(asked_table(read, objectives, kind, text, HERE, family)).rstrip()
        for (kind, text), family in zip(asked, families, strict=True)
    )
    _check_headline(name, note, question)
    text = ASKED.sub(lambda _: next(made), note).replace(ANSWERS, entry(name, members, found))
    return text.replace("\n", f"\n\n{LINKS}\n", 1)


def entry(name: str, members: Mapping[str, bytes], found: Answers) -> str:
    """What a bundle says: how it was made, its front, comparisons and verdicts."""
    shown = [condition_table(found), _narrow(comparison_table(found), COMPARED), equal_cost_table(found)]
    shown.append(training_table(found))
    shown += search_tables(read_search(members[SEARCH])) if SEARCH in members else ()
    parts = [
        _made(name, members, found),
        f'<img src="../../evidence/{name}.png" width="640" alt="The front of {name}">\n',
    ]
    parts += [_short(to_markdown(table)) for table in shown if table.rows]
    return "\n".join([*parts, *_verdicts(found)]).rstrip()


def _made(name: str, members: Mapping[str, bytes], answers: Answers) -> str:
    """Command, seeds, commits, machine and hours."""
    provenance = parse(members["provenance.json"], "provenance.json")
    complete = [one for one in answers.study.replicates if one.state == "complete"]
    seeds = sorted({one.seed for one in complete})
    commits = ", ".join(commit[:7] for commit in provenance["commits"])
    minutes = sum(one.duration_s for one in complete) / 60
    work = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{minutes:.0f} minutes"
    devices = ", ".join(dict.fromkeys(one.device for one in complete if one.device)) or "CPU"
    states = Counter(one.state for one in answers.study.replicates)
    others = "".join(f", {count} {state}" for state, count in states.items() if state != "complete")
    return (
        f"`ponderay run {answers.question.sweep}`, seeds {', '.join(map(str, seeds))}; {len(complete)} complete"
        f"{others}; commit {commits or 'not known'}; {devices}; {work} of replicates. "
        f"Check it: `ponderay verify evidence/{name}.zip`.\n"
    )


def _verdicts(answers: Answers) -> Iterator[str]:
    """The claims that something can be said of, and how many there are beside."""
    decided = [one for one in answers.verdicts if one.finding is not Finding.not_comparable]
    if decided:
        yield _short(to_markdown(_narrow(claim_table(answers.question.sweep, tuple(decided)), CLAIMED)))
    if others := len(answers.verdicts) - len(decided):
        yield f"{others} published numbers and statements are of other sizes or data: not comparable.\n"


def _narrow(table: Table, headings: Collection[str]) -> Table:
    """With those columns alone that answer the question; the bundle has all."""
    return replace(table, printed=tuple(column for column in table.printed if column.heading in headings))


def _short(text: str) -> str:
    """Without the notes that every table has."""
    kept = [line for line in text.splitlines() if not line.startswith(NOT_AGAIN)]
    return "\n".join(line for line, after in zip(kept, [*kept[1:], ""], strict=True) if line or after) + "\n"


def _members(name: str) -> Mapping[str, bytes]:
    return read_bundle(HERE / f"{name}.zip")[1]


def _answers(members: Mapping[str, bytes]) -> Answers:
    return answer(read_study(members["study.json"]), read_question(members["question.json"]))


def _note(name: str) -> str:
    return (HERE / f"{name}.md").read_text(encoding="utf-8")


def _title(note: str) -> str:
    return note.splitlines()[0].removeprefix("# ")


def _answer_in_bold(name: str, note: str) -> str:
    found = ANSWER.search(note)
    if found is None:
        raise InputError(f"evidence/{name}.md must have a line that begins with its answer in bold, **like this**.")
    return " ".join(found[1].split()).rstrip(".") + "."


def _check_headline(name: str, note: str, question: Question) -> None:
    """Raises InputError where an answer in bold claims that two are alike, and the sweep has named no margin for it."""
    if question.non_inferiority is None and re.search(r"not\s+told\s+apart", _answer_in_bold(name, note)):
        raise InputError(
            f"evidence/{name}.md must say in its answer what was not shown, for {question.sweep} has no "
            "`non_inferiority`; but it says that something is not told apart."
        )


if __name__ == "__main__":
    raise SystemExit(main())
