"""In which cell of its source a shipped claim says that its number stands."""

import re
from typing import Final

from search_spaces.claim import NumberClaim
from tests.search_spaces.transcription import Cell

CORPORA: Final = {"timit": "TIMIT", "librispeech": "Mini-LibriSpeech"}
ASR_PLACES: Final = (
    (r"^Table (\d), ", "table {}"),
    (r"^[Ss]ection 4\.3, ", "section 4.3"),
    (r"^Appendix A, Model 1, ", "table 5"),
    (r"^Appendix A, Model 2, ", "table 6"),
    (r"^Appendix A, Model 3, ", "table 7"),
    (r"^Appendix C, Mini-LibriSpeech, ", "table 8"),
    (r"^Appendix C, TIMIT, ", "table 9"),
)
ASR_ROWS: Final = {
    "random": "Random controller",
    "learned": "Learned controller",
    "surprisal": "Surprisal-based controller",
    "big": "Big network only",
    "small": "Small network only",
    "lambda .0001": "learned controller, lambda 0.0001",
}
ASR_QUANTITIES: Final = {
    "per": "PER",
    "released_per": "PER",
    "paper_flops_per_frame": "FLOPs",
    "released_flops_per_frame": "FLOPs",
    "train_loss_nats": "train loss",
    "test_loss_nats": "test loss",
}
YES: Final = {"y": "yes", "-": "no", "n": "no"}

LM_MODELS: Final = {"surprisal": "Surprisal", "MC dropout": "MC Dropout", "anchored ensembling": "BAE"}
LM_SHORT: Final = {"surprisal": "Surp.", "MC dropout": "MCD", "anchored ensembling": "BAE"}
LM_STEPS: Final = {"fixed": "Fixed", "learned": "Learned", "predicted": "Pred."}


def cell(claim: NumberClaim) -> Cell:
    """Its cell; one that no source has where the claim's place is none of the source."""
    family = claim.id.partition(".")[0]
    return {"asr": _asr, "lm": _lm, "act": _act}[family](claim)


def _asr(claim: NumberClaim) -> Cell:
    text = claim.source.place
    corpus = CORPORA[claim.setting.requires["data.kind"]]
    column = f"{corpus} {ASR_QUANTITIES[claim.place.metric]}"
    for pattern, place in ASR_PLACES:
        if found := re.search(pattern, text):
            place = place.format(*found.groups())
            return Cell(place, _asr_row(place, re.split(r"[,:] ", text)[-1]), column)
    return Cell(text, "", column)


def _asr_row(place: str, name: str) -> str:
    if not re.fullmatch(r"[yn-]+", name):
        return ASR_ROWS.get(name.removesuffix(" only"), name)
    said = [YES[flag] for flag in name]
    if place in ("table 8", "table 9"):
        return f"stochastic training {said[0]}, stochastic testing {said[1]}"
    row = f"training {said[1]}, testing {said[2]}"
    return f"features {said[0]}, {row}" if place == "table 3" else row


def _lm(claim: NumberClaim) -> Cell:
    place, *parts = claim.source.place.split(", ")
    place = place[0].lower() + place[1:]
    if parts == ["baseline"]:
        return Cell(place, "all step sizes", "Baseline perplexity")
    if place.startswith("figure 5.4"):
        return Cell("figure 5.4a", parts[0].replace("rate", "dropout"), "MC Dropout perplexity")
    model, what = parts[:2]
    if place == "table 5.1":
        return Cell(place, what, f"{LM_MODELS[model]} perplexity")
    if place == "table 5.2":
        count = what.removeprefix("K = ")
        return Cell(place, f"{count} samples" if count != "1" else "1 sample", f"{LM_MODELS[model]} perplexity")
    short, step = LM_SHORT[model], LM_STEPS[what]
    if place.startswith("figure 5.5"):
        return Cell("figure 5.5a", f"{short} {step}", "perplexity")
    if "added" in parts[-1]:
        return Cell("figure 5.6b", f"BL {step}, w/ {short} recoder", "perplexity")
    return Cell("figure 5.6a", f"{short} {step}, w/o recoder", "perplexity")


def _act(claim: NumberClaim) -> Cell:
    task, what = claim.source.place.split(", ")[:2]
    is_cost = claim.place.metric == "mean_updates"
    return Cell("tasks", f"{task} {what}", "computation against without" if is_cost else "sequence error")
