"""The sentence of the mission, on three machines; a file of its own, so that another worker of the suite takes it."""

import shutil

import pytest

from tests.cluster.test_cluster import ended_with, hindrance


@pytest.mark.cluster
def test_speech_and_a_search_survive_the_loss_of_the_head_and_a_laptop_and_a_browser_see_them(workplace, capfd):
    if why := hindrance():
        pytest.skip(why)
    if not shutil.which("chromium"):
        pytest.skip("Chromium is missing: apt install chromium")
    with capfd.disabled():
        assert ended_with("tests.cluster.mission", workplace) == 0
