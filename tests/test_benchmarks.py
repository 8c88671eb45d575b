"""Each benchmark runs as its own text says, and says what it must."""

import contextlib
import importlib.util
import io
import json
import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import moocore
import numpy as np
import pytest
import torch

ROOT = Path(__file__).parent.parent


def run(*command: str) -> list[str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return done.stdout.splitlines()


def run_here(program: str, *arguments: str) -> list[str]:
    """What it prints, in this process, which has loaded torch."""
    with contextlib.redirect_stdout(io.StringIO()) as printed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [program, *arguments])
        runpy.run_path(str(ROOT / program), run_name="__main__")
    return printed.getvalue().splitlines()


def loaded(name: str) -> Any:
    """The module of a benchmark."""
    file = importlib.util.spec_from_file_location(f"benchmark_of_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert file and file.loader
    benchmark = importlib.util.module_from_spec(file)
    sys.modules[file.name] = benchmark
    file.loader.exec_module(benchmark)
    return benchmark


def test_routed_execution_is_held_against_masked_the_weighted_mean_and_the_floor():
    rows = {
        line.split()[0]: [float(x) for x in line.split()[1:]]
        for line in run_here("benchmarks/routing.py", "--repeats", "1", "--frames", "256")[2:]
    }
    routed, weighted, over_weighted, masked, over_masked, floor = rows["0.50"]
    assert abs(over_masked - routed / masked) < 0.01
    assert abs(over_weighted - routed / weighted) < 0.01
    small, big = 512 * 512, 2 * 512 * 2048
    assert floor == pytest.approx((small + big) / 2 / (small + big), abs=0.01)


def test_a_step_of_the_recogniser_is_held_against_its_products():
    (line,) = run_here("benchmarks/recogniser.py", "--repeats", "1", "--sizes", "laptop_4_600", "--without-packed")[2:]
    name, batch, frames, step, products, over = line.replace(",", "").split()
    assert (name, batch, frames) == ("laptop", "4", "600")
    assert float(over) == pytest.approx(float(products) / float(step), abs=0.01)


def test_an_act_step_is_held_against_its_products_a_batch_that_never_leaves_masks_and_a_peer():
    (printed,) = run_here("benchmarks/act_step.py", "--repeats", "1", "--num-sizes", "1", "--json")
    found = json.loads(printed)
    (row,) = found["halting"]
    assert row["ratio_arithmetic"] == pytest.approx(1 + 8 * 6 / (2 * 128))  # of 128 rows, 6 take 8 updates more
    assert row["ratio"] == pytest.approx(row["real_ms"] / row["none_ms"])
    assert row["ratio_all_rows"] == pytest.approx(row["all_rows_ms"] / row["none_ms"])
    untrained, spread = found["training"]
    assert (untrained["mean_updates"], untrained["max_updates"]) == (2, 2)
    assert spread["mean_updates"] < spread["max_updates"] / 2
    for one in (untrained, spread):
        assert one["peer_over_ours"] == pytest.approx(one["ours_steps_per_s"] / one["peer_steps_per_s"])
        assert one["over_products"] == pytest.approx(one["products_steps_per_s"] / one["ours_steps_per_s"])


def test_published_costs_are_met_to_the_digit_or_imply_a_rate():
    """All fixed rows, and the p = .5 rows of Mini-LibriSpeech and the appendix; two of TIMIT imply p = .504 instead."""
    lines = run_here("benchmarks/published_costs.py")[1:]
    exact = [line for line in lines if line.endswith("exact")]
    differs = [line.split("  ")[0] for line in lines if line.endswith("differs")]
    assert len(exact) == 9
    assert differs == ["random, TIMIT", "no AR, random test, TIMIT"]
    implied = {line[:32].strip(): float(line.split("  rate")[0].split()[-1]) for line in lines if "not named" in line}
    assert implied["surprisal, TIMIT"] == 0.385
    assert implied["learned, TIMIT, lambda 1e-4"] == 0.7


def recoding(*arguments: str) -> dict[str, list[float]]:
    """Rows of the benchmark: training and evaluation, each as tokens/s, ratio over the fused model, and of MACs."""
    lines = run_here("benchmarks/recoding.py", *arguments)[2:]
    return {line[:22].strip(): [float(x) for x in line[22:].split()] for line in lines}


def test_recoding_is_held_against_the_fused_model_and_its_multiplications():
    size, vocabulary = 64, 1000
    sizes = ("--repeats", "1", "--hidden-size", str(size), "--vocabulary", str(vocabulary))
    rows = recoding(*sizes, "--only", "autograd", "products", "surprisal")
    fused, ours = rows["fused"], rows["surprisal"]
    assert ours[1] == pytest.approx(fused[0] / ours[0], rel=0.02)
    plain = 2 * 8 * size**2 + size * vocabulary  # two layers of four gates, each over input and state; the decoder
    top_to_layer_below = 4 * size**2  # recoding's gradient; that in the top state is the decoder's product, transposed
    assert ours[2] == pytest.approx(1 + top_to_layer_below / (3 * plain), abs=0.005)
    assert ours[5] == pytest.approx(1 + (top_to_layer_below + size * vocabulary) / plain, abs=0.005)


def test_the_floor_of_recoding_multiplies_what_the_model_does(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import recoding as benchmark
    from torch.utils.flop_counter import FlopCounterMode

    window = benchmark.Window(*torch.randint(60, (2, benchmark.NUM_STEPS, benchmark.NUM_STREAMS)))
    for is_training in (True, False):
        counted = []
        for step in benchmark.steps_of(["products", "surprisal"], 16, 60, window, is_training).values():
            with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(is_training):
                step()
            counted.append(counter.get_total_flops())
        assert counted[0] == counted[1] > 0


@pytest.mark.slow
def test_moments_are_closer_than_ten_samples():
    arguments = ("--num-epochs", "1", "--vocabulary", "1000", "--hidden-size", "64", "--num-reference", "400")
    rows = [line.split() for line in run("-m", "benchmarks.moments", *arguments)[2:]]
    errors = {(rate, way): float(rmse) for rate, way, _, _, rmse, _, _ in rows}
    for rate in ("0.15", "0.42", "0.6"):
        assert errors[rate, "moments"] < errors[rate, "K=10"]


def test_seeds_by_need_err_no_more_than_they_may_and_save_on_clear_cases():
    rows = {}
    for line in run_here("benchmarks/sequential.py", "--sweeps", "60", "--seeds", "8", "--conditions", "4")[2:-1]:
        words = line.replace("%", "").split()
        rows[tuple(words[:3])] = [float(word) for word in words[3:]]
    for (_, _, noise), (wrong, *_rest) in rows.items():
        if noise == "normal":
            assert wrong <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)
    wrong, _, seeds, saved, decided, *_ = rows["reference", "large", "normal"]
    assert saved == pytest.approx(100 * (1 - seeds / 8), abs=1.0)
    assert saved > 10 and decided > 0.9


def test_pruning_moves_the_kept_to_the_good_side_and_the_front_no_further_than_it_was():
    rows = {}
    for line in run_here("benchmarks/pruning.py", "--searches", "300")[1:]:
        noise, seeds, *numbers = map(float, line.split())
        rows[noise, seeds] = numbers
    for (noise, seeds), (saved, lost, kept, pruned, front, unpruned, confirmed) in rows.items():
        assert 0.15 < saved < (seeds - 1) / seeds and 0 < lost < 0.5
        assert kept < 0 < pruned and front == pytest.approx(unpruned, abs=0.06)
        assert abs(confirmed) < 0.05  # of fresh seeds
        assert kept > rows[noise, 2][2] - 0.001  # the first seed is a smaller part of more
    assert rows[0.02, 2][1] < rows[0.1, 2][1] < rows[0.5, 2][1]


def front_row(line: str) -> tuple[str, list[str]]:
    """What a row of the benchmark of fronts is of; plain s, uncertain s, ratio, MB, draws, limit."""
    return " ".join(line[:34].split()), line[34:].split(maxsplit=5)


def test_fronts_with_uncertainty_take_every_resample_where_they_can():
    small = ("--conditions", "100", "--seeds", "3", "--draws", "50")
    lines = [line for case in range(13) for line in run_here("benchmarks/front.py", *small, "--case", str(case))]
    rows = dict(map(front_row, lines[:-1]))
    assert len(rows) == 12
    for name, (_, _, ratio, _, num_draws, _) in rows.items():
        assert int(num_draws) == (10 if "one set" in name else 50)
        assert math.isfinite(float(ratio))  # of times, of which nothing is asserted
    assert lines[-1].startswith("page of a report") and lines[-1].endswith("limit 5 MB: kept")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["8", pytest.param("12", marks=pytest.mark.long)])
def test_ten_thousand_conditions_keep_the_limits_of_memory(case):
    """Those of the row that needs most, and of the page."""
    (line,) = run("benchmarks/front.py", "--case", case)
    assert line.endswith("MB: kept")


@pytest.mark.slow
def test_reading_a_recorded_study_is_held_against_reading_its_lines(monkeypatch, capsys):
    """But for one, its processes are this one, which has loaded everything."""
    benchmark = loaded("ten_thousand")
    measure = benchmark.measure

    def here(folder: Path, code: str, *arguments: str) -> tuple[float, float]:
        if code == benchmark.FLOOR:
            return measure(folder, code, *arguments)
        (source := folder / "command.py").write_text(code)
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
            patch.chdir(folder)
            patch.setenv("PONDERAY_RUNS", str(folder))
            patch.delenv("PONDERAY_TRACKING_URI", raising=False)
            patch.setattr(sys, "argv", ["ponderay", *arguments])
            try:
                runpy.run_path(str(source))
            except SystemExit as ended:
                assert not ended.code, arguments
        return 1.0, 1.0

    monkeypatch.setattr(benchmark, "measure", here)
    monkeypatch.setattr(sys, "argv", ["ten_thousand", "--conditions", "20", "--repeats", "1"])
    benchmark.main()
    _, floor, *lines = capsys.readouterr().out.splitlines()
    assert floor.startswith("floor") and floor.endswith(" 1.0 over the floor")
    first = [line.split()[0].rstrip(",") for line in lines]
    assert first == ["pareto", *["status"] * 3, *["pareto"] * 3, "read"]
    assert all(line.endswith(" over the floor") for line in lines)


def shares(lines: list[str]) -> dict[str, list[float]]:
    """Rows of the coverage benchmark by their first 31 characters, in percent, without what stands in brackets."""
    rows = [line for line in lines if line[31:32] == " " and line[31:40].strip().replace(".", "").isdigit()]
    return {" ".join(line[:31].split()): [float(x) for x in line[31:].split() if x[0] != "("] for line in rows}


def test_intervals_cover_and_tests_err_as_they_must_on_normal_data():
    """Within four standard errors of 94 to 96 %, and of at most 5 %, of so few draws."""
    lines = run_here("benchmarks/coverage.py", "--draws", "400")
    rows = shares(lines)
    for name in ("mean", "paired", "unpaired", "unpaired, 1 : 10", "published", "front apart"):
        assert all(94 - 2 <= share <= 96 + 2 for share in rows[f"{name} normal"]), name
    for name in ("seeds ~ speakers", "of speakers"):
        assert all(93 - 2 <= share <= 96 + 2 for share in rows[f"{name} normal"]), name
    for name in ("Welch", "paired flips", "regroupings", "Holm", "equivalence"):
        assert all(share <= 5 + 4.4 for share in rows[f"{name} normal"]), name
    assert rows["paired flips normal"][:2] == [0, 0] and rows["mean skewed"][0] < 92
    assert "normal data outside 94 to 96 %:" in lines and len(rows) == 12 * 5 + 8 * 3
    assert all(share <= 10 + 6 for share in rows["seem apart normal"])


def test_the_benchmark_counts_volumes_as_the_study_does():
    benchmark = loaded("coverage")
    means = np.random.default_rng(1).uniform(0, 1, (20, 6, 2))
    reference = 1.01 * means.max(1)
    expected = [moocore.hypervolume(one, ref=ref) for one, ref in zip(means, reference, strict=True)]
    assert benchmark.volume(means, reference) == pytest.approx(expected, rel=1e-12)
