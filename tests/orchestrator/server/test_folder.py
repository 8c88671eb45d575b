"""What a server keeps in its folder."""

import pytest

from orchestrator.server.folder import ServerFolder


@pytest.mark.parametrize("content", ["", "no port", "\x00\x00"])
def test_a_port_that_a_full_disk_left_empty_is_chosen_anew(tmp_path, content):
    (tmp_path / "postgres.port").write_text(content)
    port = ServerFolder(tmp_path).postgres().port
    assert 1024 <= port < 65536
    assert (tmp_path / "postgres.port").read_text() == str(port)
