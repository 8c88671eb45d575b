"""Secrets in commands, settings and free text become ***; what is none stays as it is."""

import pytest

from orchestrator.masking import masked_setting, masked_text, without_secrets


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ponderay run asr.demo --seeds 3", "ponderay run asr.demo --seeds 3"),
        ("ponderay run --password hunter2 asr.demo", "ponderay run --password *** asr.demo"),
        ("ponderay run --api-key=hunter2", "ponderay run --api-key=***"),
        ("AWS_SECRET_ACCESS_KEY=hunter2 ponderay run", "AWS_SECRET_ACCESS_KEY=*** ponderay run"),
        ("ponderay run --set 'data.token=hun ter2'", "ponderay run --set data.token=***"),
        ("ponderay ui postgresql://me:hunter2@host/db", "ponderay ui postgresql://me:***@host/db"),
        ('ponderay run --set \'a={"password": "hunter2", "b": 1}\'', 'ponderay run --set a={"password": ***, "b": 1}'),
        ("ponderay run --set data.num_train_tokens=100", "ponderay run --set data.num_train_tokens=100"),
        ("ponderay 'open --token hunter2", "ponderay 'open --token ***"),
        ("ponderay run --set min_token_count=5", "ponderay run --set min_token_count=5"),
        ("WANDB_KEY=hunter2 ponderay run", "WANDB_KEY=*** ponderay run"),
    ],
)
def test_secrets_are_masked_in_commands(command, shown):
    assert without_secrets(command) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach postgresql://me:hunter2@host/db now", "cannot reach postgresql://me:***@host/db now"),
        ("HF_TOKEN=hunter2 was refused", "HF_TOKEN=*** was refused"),
        ("+    password = 'hunter2'  # new", "+    password = ***  # new"),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("GET https://host/x?sig=hunter2&n=1", "GET https://host/x?sig=***&n=1"),
        ("ValueError: `rate` must be in [0, 1), but got 1.2.", "ValueError: `rate` must be in [0, 1), but got 1.2."),
    ],
)
def test_secrets_are_masked_in_texts(text, shown):
    assert masked_text(text) == shown


def test_a_setting_is_masked_by_its_name_or_by_what_it_holds():
    assert masked_setting("data.token", "hunter2") == "***"
    assert masked_setting("data.url", "https://me:hunter2@host/x") == "https://me:***@host/x"
    assert masked_setting("data.num_tokens", "5") == "5"
