"""Makes RESULTS.md from bundles of raw results and the notes beside them.

`python -m evidence.make_page` writes RESULTS.md and a picture of each front; with --check it writes nothing, verifies
every bundle and says whether the page is what they give. A study is `NAME.zip`, which `ponderay report SWEEP --bundle
evidence/NAME.zip` wrote, and `NAME.md`: a title, the question, a line `{answers}`, lines that ask for further tables
(`metric_tables`), and what was learnt, of which the first words in bold at the start of a line stand at the top of the
page. A note without a bundle stands as it is; those are benchmarks.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
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
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.condition_table import condition_table
from orchestrator.report.equal_cost_table import equal_cost_table
from orchestrator.report.front_files import draw_front
from orchestrator.report.table import INTERVAL, Table, to_markdown
from orchestrator.report.training_table import training_table
from orchestrator.results.question import Question
from trainables.errors import InputError

HERE = Path(__file__).parent
PAGE = HERE.parent / "RESULTS.md"
ANSWERS = "{answers}"
COMPARED = {"condition", "against", "metric", "difference", INTERVAL, "p (Holm)", "answer", "n needed", "warnings"}
CLAIMED = {"claim", "verdict", "published", "ours", "difference", INTERVAL, "margin", "p", "reason", "source"}
ANSWER = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE | re.DOTALL)
"""Words in bold that begin a line of a note."""

NOT_AGAIN = ("Mean ± sample", "Bold:", "Smallest shown:", "Of conditions that do not cost the same", "Next tenth:")
"""How notes begin that every table of a kind has."""

HEAD = """\
# Results

Disappointing results are here too. `make results` makes this page from the bundles of raw replicates in
[evidence/](evidence) and the notes beside them; `ponderay verify evidence/NAME.zip` makes the tables of a bundle again.
Where conditions do not cost the same, "front there" is what the interpolated front of the others has at the condition's
own cost, and P(better) that it is better than that front ([docs/statistics.md](docs/statistics.md#two-conditions)). A
point of an error rate is one hundredth: .640 is 1.0 points less than .650. One test is chosen for all comparisons of a
study before it runs, and p is adjusted for all tests of its part of the page; studies whose bundles were written before
that rule (format 5 and less) have a family for each table, and their tables of differences are paired by seed.
"""


def main() -> int:
    """Writes the page, or with --check compares it."""
    entries, notes = _names(".zip"), [name for name in _names(".md") if not (HERE / f"{name}.zip").exists()]
    if "--check" not in sys.argv[1:]:
        for name in entries:
            picture = HERE / f"{name}.png"
            draw_front(_answers(_members(name)), (), HERE / f"{name}.html", picture)
            (HERE / f"{name}.html").unlink()
            # by a palette it takes half of the bytes, which every clone and every job carries
            Image.open(picture).convert("RGB").quantize(dither=Image.Dither.NONE).save(picture, optimize=True)
        PAGE.write_text(page(entries, notes), encoding="utf-8")
        return 0
    different = [name for name in entries if verify(HERE / f"{name}.zip").differences]
    if PAGE.read_text(encoding="utf-8") != page(entries, notes):
        different.append(PAGE.name)
    print(f"Not what the bundles give: {', '.join(different)}" if different else f"{len(entries)} bundles: all equal")
    return 1 if different else 0


def page(entries: list[str], notes: list[str]) -> str:
    """The whole of RESULTS.md."""
    studies = [study(name) for name in entries]
    return "\n".join([HEAD, contents(entries), *studies, *map(_note, notes)])


def contents(entries: list[str]) -> str:
    """A table with the title of each study, which leads to it, and its answer in one sentence."""
    notes = {name: _note(name) for name in entries}
    rows = [f"| {_link(note)} | {_answer_in_bold(name, note)} |" for name, note in notes.items()]
    return "\n".join(["| study | answer |", "|---|---|", *rows, ""])


def study(name: str) -> str:
    """The note `name` with what its bundle says in the places that ask for it."""
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
    return ASKED.sub(lambda _: next(made), note).replace(ANSWERS, entry(name, members, found))


def entry(name: str, members: Mapping[str, bytes], found: Answers) -> str:
    """What a bundle says: how it was made, its front, comparisons and verdicts."""
    shown = [condition_table(found), _narrow(comparison_table(found), COMPARED), equal_cost_table(found)]
    shown.append(training_table(found))
    shown += search_tables(read_search(members[SEARCH])) if SEARCH in members else ()
    parts = [_made(name, members, found), f'<img src="evidence/{name}.png" width="640" alt="The front of {name}">\n']
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
    """Those claims that something can be said of, and how many there are beside."""
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


def _link(note: str) -> str:
    """The title of a note, which leads to it by the name that GitHub gives to a heading."""
    title = note.splitlines()[0].removeprefix("# ")
    anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


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


def _names(ending: str) -> list[str]:
    return sorted(file.stem for file in HERE.glob(f"*{ending}"))


if __name__ == "__main__":
    raise SystemExit(main())
