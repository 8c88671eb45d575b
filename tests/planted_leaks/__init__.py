"""Models with a planted fault each, for `ponderay audit`: by sweep, the kind of check that should find it, and why.

CLEAN are models that look as if they had a fault and have none. Each is `ponderay audit PLACE`, from this repository's
root. The comment WRONG or RIGHT in a study file says where.
"""

_HERE = "tests/planted_leaks"
FUTURE, TARGET, SUM, NEIGHBOURS = "later inputs", "targets", "sums of probabilities", "padding, batch and order"
ADAPTS, COST, TRAINED, SEEDS = (
    "scores before it adapts",
    "counted cost is executed cost",
    "test items in training",
    "seeds",
)

_OWN = {
    "chunk_norm": (FUTURE, "the mean of a chunk of 16, from the second chunk on, is known before the chunk has come"),
    "teacher_forcing": (TARGET, "the true class of the place before is read in testing"),
    "truncated_softmax": (SUM, "classes below 2 % are cut off and the rest is not normalised again"),
    "dropout_left_on": (NEIGHBOURS, "dropout in testing, from a global stream: no two calls are equal"),
    "fixed_start": (SEEDS, "every seed has the weights of seed 0"),
    "few_duplicates": (TRAINED, "2 of 20 test items stand in training under other names"),
    "sliding_windows": (TRAINED, "test windows overlap training windows of the same recording by four fifths"),
    "planned_cost": (COST, "counts two updates a place, and runs up to four where it is unsure"),
    "ensemble_by_test_loss": (TARGET, "weights of an ensemble come from the targets of the batch that is tested"),
    "gate_sees_next": (FUTURE, "the gate reads the next input; the two networks are equal, so only the decision tells"),
    "learns_before_it_scores": (ADAPTS, "a segment of eight is scored with the bias that its own targets have moved"),
    "padding_counts": (NEIGHBOURS, "a backward GRU reads the padding of shorter items"),
    "state_not_reset": (NEIGHBOURS, "an item begins with a tenth of the state of the item before it"),
}
_ACT = {
    "act_batch_statistics": (NEIGHBOURS, "batch normalisation before the readout is in training mode in testing"),
    "act_hash_seed": (FUTURE, "halting is drawn from a hash of the whole sequence, later bytes included"),
    "act_oracle_draws": (TARGET, "a place halts later where its right answer is a rare byte"),
    "act_two_passes": (COST, "testing averages two passes and counts one"),
    "act_fixed_start": (SEEDS, "every seed has the weights of one stream; the data are the seed's"),
    "act_small_parity": (TRAINED, "there are 27 inputs, and training and test have the same"),
}
_ASR = {
    "asr_batch_mean": (NEIGHBOURS, "a twentieth of the mean of the batch, with its padding, goes off the frames"),
    "asr_padding_in_large_batches": (NEIGHBOURS, "batches of more than four read padding as frames"),
    "asr_label_draws": (TARGET, "draws that route are keyed by the utterance's phones"),
    "asr_same_speakers": (TRAINED, "training and test have the same speakers"),
    "asr_dense_route": (COST, "both networks run on every frame, and the chosen one is counted"),
}
_LM = {
    "lm_recoded_first": (ADAPTS, "a token is scored by a state that its own -log p has recoded"),
    "lm_learns_first": (ADAPTS, "dynamic evaluation learns from a segment before it scores it"),
    "lm_cache_off_by_one": (ADAPTS, "the cache of a token has the token's own entry in it"),
    "lm_late_batch_centre": (NEIGHBOURS, "from token 16 on, embeddings are centred over all streams of a batch"),
    "lm_test_text_in_training": (TRAINED, "300 tokens of the test text stand in the training text, at another place"),
}
_ROUTED = {
    "routed_top_k_of_all": (FUTURE, "in testing too the k highest scores of the whole sequence are chosen"),
    "routed_threshold_of_batch": (NEIGHBOURS, "the threshold that routes is a quantile of the batch that is tested"),
    "routed_free_byte_model": (COST, "the frozen model that the controller asks is not counted"),
}
_FILES = {"own": _OWN, "act": _ACT, "asr": _ASR, "lm": _LM, "routed": _ROUTED}

LEAKS: dict[str, tuple[str, str]] = {
    f"{_HERE}/{file}.py:{name}": leak for file, leaks in _FILES.items() for name, leak in leaks.items()
}
CLEAN: dict[str, str] = {
    f"{_HERE}/own.py:clean_batch_norm": "batch normalisation with its running statistics in testing",
    f"{_HERE}/own.py:clean_scores_first": "learns from each target, and has scored it before; says that it adapts",
    f"{_HERE}/own.py:clean_past_loss_router": "routes by the loss of the place before; says that it adapts",
    f"{_HERE}/own.py:clean_masked": "bidirectional on packed sequences; says that it is not causal",
    f"{_HERE}/act.py:act_clean_running_mean": "off each step goes the mean of those up to it",
    f"{_HERE}/lm.py:lm_clean_dynamic": "dynamic evaluation as it ships",
}
