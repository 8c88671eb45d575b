"""A record of each kind, as sessions write them."""

RECORDS = (
    {
        "kind": "started", "attempt": "0f3a.1", "code_version": "a5148b1", "config": {"rate": 0.5, "seed": 1},
        "evaluations": ["plain.0123456789abcdef"], "host": "lab", "device": "Xeon (AVX512)", "threads": 2, "pid": 7,
    },
    {"kind": "set_aside", "said": "step_000001.0123456789abcdef.pt cannot be read (\u00e4)", "is_untold": True},
    {"kind": "system", "step": 1, "values": {"cpu_utilization_percentage": 12.5}},
    {"kind": "metrics", "step": 1, "metrics": {"valid_error@plain": 0.1, "loss": 1e-300}, "kept": True},
    {"kind": "metrics", "step": 2, "metrics": {"valid_error@plain": float("nan"), "loss": float("inf")}, "kept": False},
    {"kind": "trained"},
    {
        "kind": "state", "state": "failed", "attempt": "0f3a.1", "code_version": "a5148b1", "is_lost": False,
        "error": "ArithmeticError: x", "evaluation": "plain.0123456789abcdef", "is_input_error": False,
        "traceback": "Traceback\n", "peak_host_bytes": 1, "peak_gpu_bytes": 0, "size_bytes": 5,
    },
    {"kind": "of another version", "value": None},
    {"kind": "evaluation", "id": "plain.0123456789abcdef", "step": 2, "metrics": {"error@plain": 0.25}},
    {
        "kind": "state", "state": "complete", "attempt": "0f3a.2", "peak_host_bytes": 123456, "peak_gpu_bytes": 0,
        "products": {"plain": "step_000001.0123456789abcdef.pt"}, "size_bytes": 4096,
    },
)  # fmt: skip
