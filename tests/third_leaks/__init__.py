"""Models with one planted fault each, and some that only look so; what an audit finds in them is another matter.

They were written by somebody who knew what a model gives to an audit, and not how an audit works.
"""

_OWN, _ACT, _LM, _ASR, _ROUTED = (f"tests/third_leaks/{name}.py:" for name in ("own", "act_", "lm_", "asr_", "routed_"))

LEAKS: dict[str, tuple[str, str]] = {
    _OWN + "teacher_forced": ("blind to its target", "the tag before the first place is the last of the sequence"),
    _OWN + "counting_cache": ("scores before it adapts", "a symbol is counted before it is scored"),
    _OWN + "pruned": ("the cost that is counted runs", "zero weights are not counted, but multiplied"),
    _OWN + "windows": ("no near copies in training", "overlapping windows of one series are split at random"),
    _ACT + "share_of_sequence": ("uses no later input", "each step reads its place as a share of the whole length"),
    _ACT + "calibrated": ("probabilities sum to 1", "a temperature divides log-probabilities behind the softmax"),
    _ACT + "one_stream": ("seeds reach everything", "the training batches and their order are those of seed 0"),
    _LM + "cache_with_its_own": ("scores before it adapts", "a step sees its own entry of the cache"),
    _LM + "augmented_before_split": ("no near copies in training", "a noisy copy of the test text is trained on"),
    _LM + "given_embedding": ("seeds reach everything", "the embedding begins from one fixed seed"),
    _ASR + "over_padding": ("padding changes nothing", "the backward GRU begins in the padding of a batch"),
    _ASR + "both_networks": ("the cost that is counted runs", "both networks run on each frame, one is counted"),
    _ASR + "by_utterance": ("other speakers in training", "utterances are split at random, and not speakers"),
    _ROUTED + "highest_in_tests": ("uses no later input", "the highest scores of a whole sequence choose in tests"),
    _ROUTED + "all_topics": ("no test items in training", "the training text has the test text inside"),
}
"""Where a model is: what does not hold of it, and why."""

CLEAN: dict[str, str] = {
    _OWN + "running_norm": "normalised over the places up to each one; the readout begins at zero for all seeds",
    _OWN + "shared_header": "training and test items share their first symbols, where nothing is asked",
    _OWN + "slimmed": "fewer products are counted than the checkpoint has weights, because fewer run",
    _ACT + "share_of_most": "each step reads its place as a share of a length that is fixed",
}
"""Where a model is: why it is right."""
