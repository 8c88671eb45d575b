"""A journal folded: what it says of the replicate."""

from orchestrator.journal.summary import summarise


def test_the_time_between_sessions_does_not_count_and_last_values_stand():
    place = {"host": "h", "device": "d", "code_version": "v1", "evaluations": ["plain.1"]}
    records = [
        {"kind": "started", "time_ms": 1_000, **place},
        {"kind": "metrics", "time_ms": 3_000, "step": 1, "metrics": {"loss": 2.0, "rate": 0.5}},
        {"kind": "metrics", "time_ms": 4_000, "step": 2, "metrics": {"loss": 1.0}},
        {"kind": "system", "time_ms": 9_000, "step": 9, "values": {"cpu_utilization_percentage": 50.0}},
        {"kind": "started", "time_ms": 1_000_000, **place, "code_version": "v2", "host": "other"},
        {"kind": "metrics", "time_ms": 1_000_500, "step": 3, "metrics": {"loss": 0.5}},
        {"kind": "evaluation", "time_ms": 1_001_000, "step": 3, "id": "plain.1", "metrics": {"error@plain": 0.25}},
        {"kind": "state", "time_ms": 1_002_000, "state": "complete", "size_bytes": 7, "peak_host_bytes": 9},
    ]
    folded = summarise(records)
    assert folded.metrics == {"loss": 0.5, "rate": 0.5, "error@plain": 0.25}
    assert folded.duration_s == 3.0 + 2.0
    assert (folded.step, folded.versions, folded.host) == (3, ["v1", "v2"], "other")
    assert (folded.evaluations, folded.asked_for) == ({"plain.1"}, {"plain.1"})
    assert (folded.size_bytes, folded.peak_host_bytes, folded.peak_gpu_bytes) == (7, 9, 0)


def test_of_a_kind_of_a_later_version_the_time_alone_counts():
    begun = {"kind": "started", "time_ms": 1_000, "host": "h", "device": "d", "code_version": "v1"}
    unknown = {"kind": "something", "time_ms": 3_000, "metrics": "none", "size_bytes": "large", "peak_gpu_bytes": []}
    folded = summarise([begun, unknown])
    assert (folded.duration_s, folded.metrics, folded.size_bytes) == (2.0, {}, 0)
