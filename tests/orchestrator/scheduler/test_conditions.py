"""Which conditions and seeds are wanted, and when a condition is closed and told."""

from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.folder import ReplicateFolder
from search_spaces.sweep import Sequential
from tests.orchestrator.scheduler.parts import parts, pruned_parts


def test_every_listed_condition_gets_every_seed(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1, 2, 3))
    assert made.scheduler.extend() and not made.scheduler.extend()
    assert [(task.condition.name, task.seed) for task in made.tasks] == [(name, n) for name in "ab" for n in (1, 2, 3)]
    assert not made.scheduler.is_finished()


def test_what_could_not_be_looked_at_is_taken_in_again(tmp_path, monkeypatch):
    made = parts(tmp_path, {"a": {}}, seeds=(1, 2, 3))
    records, num_read = ReplicateFolder.records, []

    def away_once(folder):
        num_read.append(folder)
        if len(num_read) == 2:
            raise UnavailableError("the bucket is away")
        return records(folder)

    monkeypatch.setattr(ReplicateFolder, "records", away_once)
    assert made.scheduler.next() is None and not made.scheduler.is_finished()
    assert [made.start().seed for _ in range(3)] == [1, 2, 3]
    assert [task.seed for task in made.tasks] == [1, 2, 3]


def test_a_condition_is_told_once_all_its_replicates_are_in(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1, 2))
    tasks = [made.start() for _ in range(3)]
    made.end(tasks[0], 0.5)
    made.end(tasks[2], 0.125)
    assert made.source.told == [] and not made.recorder.named("end_condition")
    made.end(tasks[1], 0.25)
    assert made.source.told == [("a", {"cost@plain": 1.0, "error@plain": 0.375})]
    ((condition, replicates, decision),) = made.recorder.named("end_condition")
    assert (condition.name, [one.seed for one in replicates], decision) == ("a", [1, 2], "")
    made.end(made.start())
    assert made.scheduler.next() is None and made.scheduler.is_finished()
    assert [name for name, _ in made.source.told] == ["a", "b"]


def test_of_a_failed_condition_the_search_learns_that_of_a_lost_one_nothing(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1,))
    made.end(made.start(), state="failed", error="ZeroDivisionError")
    b = made.start()
    b.tries = 4
    made.lose(b)
    assert made.source.told == [("a", None)]
    assert [call[0].name for call in made.recorder.named("end_condition")] == ["a", "b"]


def test_a_condition_without_an_objective_counts_as_failed_and_stops_nothing(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    made.end(made.start(), metrics={"loss": 1.0})
    assert made.source.told == [("a", None)]


def test_seeds_are_added_until_a_comparison_is_decided(tmp_path):
    """Differences of the same size at every seed: three are too few for any level, and all are had in the end."""
    sequential = Sequential(minimum=3, question="reference")
    conditions = {"a": {}, "b": {"x": 0.25}}
    made = parts(tmp_path, conditions, seeds=tuple(range(1, 9)), sequential=sequential, reference="a")
    assert made.scheduler.extend() and len(list(made.tasks)) == 6
    while (work := made.scheduler.next()) or not made.scheduler.is_finished():
        task = made.tasks[work.key]
        made.end(task, 0.5 + 0.01 * task.seed * (1 if task.condition.name == "a" else -1) ** task.seed)
    ended = {call[0].name: call[2] for call in made.recorder.named("end_condition")}
    assert set(ended) == {"a", "b"} and all(ended.values())
    assert len(made.tasks.of("a")) == len(made.tasks.of("b")) > 3
    notes = [text for (text,) in made.view.named("note")]
    assert notes == [f"{name}: {ended[name]} ({len(made.tasks.of(name))} seeds)" for name in "ab"]


def test_what_an_earlier_driver_left_open_is_closed_though_nothing_of_it_was_run(tmp_path):
    first = parts(tmp_path, {"a": {}, "open": {"x": 0.25}}, seeds=(1,))
    first.end(first.start())
    first.end(first.start())
    again = parts(tmp_path, {"a": {}, "open": {"x": 0.25}}, known=first.scheduler.replicates(), seeds=(1,))
    assert again.scheduler.next() is None and again.scheduler.is_finished()
    assert [call[0].name for call in again.recorder.named("end_condition")] == ["open"]
    assert [name for name, _ in again.source.told] == ["a", "open"]


def states(made) -> list[tuple[str, int, str]]:
    return [(task.condition.name, task.seed, task.state) for task in made.tasks]


def test_a_pruned_search_gives_a_first_seed_and_then_decides(tmp_path):
    made = pruned_parts(tmp_path)
    assert made.scheduler.extend() and states(made) == [("a", 1, "waiting"), ("b", 1, "waiting")]
    made.source.decisions = {"a": "kept", "b": "pruned: a is better"}
    made.end(made.start(), 0.5)
    made.end(made.start(), 0.75)
    assert made.source.asked == [] and made.source.told == [] and not made.recorder.named("end_condition")
    for value in (0.25, 0.0):
        made.end(made.start(), value)
    assert [name for name, *_ in made.source.asked] == ["a", "b"]
    assert made.source.asked[1] == ("b", {"cost@plain": 1.0, "error@plain": 0.75}, False)
    assert states(made) == [("a", 1, "complete"), ("b", 1, "complete"), ("a", 2, "complete"), ("a", 3, "complete")]
    assert made.source.told == [
        ("b", {"cost@plain": 1.0, "error@plain": 0.75}),
        ("a", {"cost@plain": 1.0, "error@plain": 0.25}),
    ]
    ended = {call[0].name: (len(call[1]), call[2]) for call in made.recorder.named("end_condition")}
    assert ended == {"a": (3, "kept"), "b": (1, "pruned: a is better")}
    assert made.view.named("note") == [("b: pruned: a is better (1 seed)",)]
    assert made.scheduler.next() is None and made.scheduler.is_finished()


def test_what_cannot_be_decided_now_keeps_a_search_waiting_and_is_decided_once_it_can(tmp_path):
    made = pruned_parts(tmp_path, num_seeds=2)
    made.source.decisions = {"a": "kept"}
    for _ in range(3):
        made.end(made.start())
    assert made.scheduler.next() is None and not made.scheduler.is_finished()
    made.source.decisions["b"] = "kept"
    assert made.scheduler.next() and states(made)[-1] == ("b", 2, "live")


def test_what_a_search_has_still_to_draw_counts_as_many_seeds_as_it_has_given_so_far(tmp_path):
    """Of three seeds: four conditions to draw, and two to decide on."""
    made = pruned_parts(tmp_path)
    made.source.undrawn, made.source.decisions = 4, {"a": "kept"}
    first = made.start()
    assert made.view.named("conditions")[-1][1] == 4 * 3 + 2 * 2
    made.end(first)
    made.end(made.start())
    made.start()
    assert made.view.named("conditions")[-1][1] == 4 * 3 + 2, "a is kept with three seeds, b undecided"
    made.source.decisions["b"] = "pruned: a is better"
    made.scheduler.extend()
    made.start()
    assert made.view.named("conditions")[-1][1] == 4 * 2


def test_behind_a_first_seed_that_failed_come_no_others(tmp_path):
    made = pruned_parts(tmp_path)
    made.source.decisions = {"b": "pruned: a is better"}
    made.end(made.start(), state="failed", error="ZeroDivisionError")
    made.end(made.start())
    assert made.scheduler.next() is None and made.scheduler.is_finished()
    assert [name for name, *_ in made.source.asked] == ["b"]
    assert made.source.told[0] == ("a", None) and len(states(made)) == 2


def test_a_condition_of_which_other_seeds_were_recorded_is_not_pruned(tmp_path):
    """As where Optuna's database was lost, and the same conditions are drawn again."""
    first = pruned_parts(tmp_path, num_seeds=2)
    first.source.decisions = {"a": "kept", "b": "kept"}
    for _ in range(3):
        first.end(first.start())
    made = pruned_parts(tmp_path, num_seeds=2, known=first.scheduler.replicates())
    made.scheduler.extend()
    made.scheduler.extend()
    assert {name: has_begun for name, _, has_begun in made.source.asked} == {"a": True, "b": True}


def test_a_condition_that_only_the_journals_know_is_told_and_written_once(tmp_path):
    first = parts(tmp_path, {"a": {}}, seeds=(1, 2))
    first.end(first.start())
    first.end(first.start())
    again = parts(tmp_path, {"a": {}}, seeds=(1, 2))
    assert again.scheduler.next() is None and again.scheduler.is_finished()
    assert [name for name, _ in again.source.told] == ["a"]
    assert len(again.recorder.named("end_condition")) == 1
