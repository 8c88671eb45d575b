"""What others may have changed, bundles, claims and journals, is read or refused in one sentence."""

import json
import random
import zipfile

import pytest

from orchestrator.journal import lines
from orchestrator.journal.summary import summarise
from orchestrator.report.answers import answer
from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.verify import verify
from orchestrator.report.bundle.write import MANIFEST, member_of
from orchestrator.report.save import save
from search_spaces import claim_file
from tests.mutations import damaged, misshapen
from tests.orchestrator.report.studies import question, small_study
from trainables.errors import InputError

CLAIMS = b"""
source = "Buffon 1777"

[[number]]
condition = "few"
metric = "error@test"
mean = 0.131
std = 0.01
n = 5
margin = 0.1
margin_reason = "a throw"
direction = "minimize"
place = "Table 1, row 1"

[[statement]]
text = "Many darts err less than few."
left = { condition = "many", metric = "error@test" }
relation = "below"
right = { condition = "few", metric = "error@test" }
place = "Table 1"
"""


@pytest.fixture
def bundle(workplace):
    """Members of a whole one by name."""
    save(answer(small_study(), question()), workplace / "report", workplace / "whole.zip")
    with zipfile.ZipFile(workplace / "whole.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("name", ["study.json", "question.json", MANIFEST])
def test_a_bundle_of_misshapen_values_is_verified_or_refused(workplace, bundle, name):
    numbers, ended = random.Random(1), []
    for _ in range(30):
        members = bundle | {name: json.dumps(misshapen(json.loads(bundle[name]), numbers)).encode()}
        if name != MANIFEST:
            manifest = json.loads(bundle[MANIFEST])
            manifest["members"][name] = vars(member_of(members[name]))
            members[MANIFEST] = json.dumps(manifest).encode()
        with zipfile.ZipFile(workplace / "changed.zip", "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        try:
            ended.append(bool(verify(workplace / "changed.zip").differences))
        except InputError as error:
            ended.append(str(error))
    assert any(isinstance(one, str) for one in ended)


def test_an_archive_with_changed_bytes_is_refused_or_told(workplace, bundle):
    """But for bytes of the archive that say nothing of a member, such as the version that is needed to unpack it."""
    numbers, path, whole = random.Random(1), workplace / "changed.zip", (workplace / "whole.zip").read_bytes()
    for _ in range(100):
        path.write_bytes(damaged(whole, numbers))
        try:
            found = verify(path)
        except InputError as error:
            assert path.name in str(error)
        else:
            assert found.differences or read_bundle(path)[1] == {n: x for n, x in bundle.items() if n != MANIFEST}


def test_claims_are_read_or_refused_with_their_file(workplace):
    numbers, path, refused = random.Random(1), workplace / "claims.toml", 0
    path.write_bytes(CLAIMS)
    assert len(claim_file.read(path, "toy")) == 2
    for _ in range(100):
        path.write_bytes(damaged(CLAIMS, numbers))
        try:
            claim_file.read(path, "toy")
        except InputError as error:
            refused += 1
            assert path.name in str(error)
    assert refused


def test_a_damaged_journal_gives_its_whole_lines(workplace):
    records = [{"kind": "metrics", "step": step, "time": 1.5, "metrics": {"loss": 0.5}} for step in range(20)]
    whole = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    numbers, path = random.Random(1), workplace / "journal.jsonl"
    for _ in range(100):
        content = damaged(whole, numbers)
        path.write_bytes(content)
        kept = lines.read(path).records
        lines.mend(path)
        assert lines.read(path).records == kept and not lines.read(path).fault
        summarise(kept)
