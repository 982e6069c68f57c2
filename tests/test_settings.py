"""Every knob: flag over environment over default; wrong values refuse to start and name the setting."""

from __future__ import annotations

import traceback

import pytest

from service.errors import SettingsError
from service.settings import Settings, load_settings


def test_flag_over_environment_over_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().port == 8000
    monkeypatch.setenv("VQA_PORT", "9000")
    assert load_settings().port == 9000
    assert load_settings(port=9001).port == 9001
    assert load_settings(port=None).port == 9000, "a flag that was not given is none"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "-1"),
        ("port", "70000"),
        ("port", "http"),
        ("policy", "best"),
        ("device", "tpu"),
        ("max_batch_size", "0"),
        ("body_timeout_s", "0"),
        ("max_image_pixels", "-5"),
        ("log_level", "loud"),
        ("drain_timeout_s", "inf"),
        ("max_timeout_ms", "1" + "0" * 300),
        ("cache_bytes", "-1"),
        ("cache_ttl_s", "0"),
        ("redis_url", "http://cache:6379"),
        ("cache_secret", "short"),
    ],
)
def test_a_wrong_value_names_the_setting(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"VQA_{name.upper()}", value)
    with pytest.raises(SettingsError, match=rf"{name} \(VQA_{name.upper()}\)"):
        load_settings()


@pytest.mark.parametrize(
    "flags",
    [
        {"max_questions": 300, "max_in_flight": 200},
        {"default_timeout_ms": 200_000},
        {"max_buffered_bytes": 2 * 1024 * 1024},
        {"redis_url": "redis://cache"},
    ],
)
def test_values_that_contradict_each_other_are_refused(flags: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(flags))):
        load_settings(**flags)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VQA_HOST", "")
    assert load_settings().host == "127.0.0.1", "an empty host would be every interface"
    with pytest.raises(SettingsError, match="host"):
        load_settings(host="")


def test_a_kubernetes_service_named_vqa_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VQA_PORT", "tcp://10.0.0.1:80")
    assert load_settings().port == 8000


def test_levels_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VQA_LOG_LEVEL", "INFO")
    assert load_settings().log_level == "info"


SECRETS = {"redis_url": "redis://:pass-word-0123@cache", "cache_secret": "cache-word-0123456"}


def test_secrets_do_not_show() -> None:
    settings = load_settings(**SECRETS)
    assert settings.redis_url is not None
    assert settings.redis_url.get_secret_value() == SECRETS["redis_url"]
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert "word" not in shown


@pytest.mark.parametrize(
    "wrong",
    [
        {"redis_url": "http://:pass-word@cache"},
        {"cache_secret": "short-word"},
        {"cache_secret": None, "redis_url": "redis://:pass-word@cache"},
        {"port": -1},
        {"max_questions": 300, "max_in_flight": 200},
    ],
)
def test_secrets_do_not_show_in_errors(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(**(SECRETS | wrong))
    told = "".join(traceback.format_exception(caught.value))
    assert "word-" not in told
    assert "pass-word" not in told
    assert "short-word" not in told


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_workers_share_cpus_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VQA_THREADS", "6")
    part = load_settings(workers=2, max_in_flight=200, port=9001).per_worker(cpus=8)
    assert (part.workers, part.threads, part.decode_threads, part.max_in_flight) == (1, 3, 3, 100)
    assert part.max_buffered_bytes == load_settings().max_buffered_bytes // 2
    assert part.port == 9001, "what is no amount stays"
    part = load_settings(workers=3, decode_threads=9).per_worker(cpus=2)
    assert (part.threads, part.decode_threads) == (1, 3)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"workers": 5}, "max_questions may not exceed max_in_flight"),
        ({"workers": 10, "max_questions": 1}, "max_buffered_bytes may not be below max_body_bytes"),
        ({"workers": 3, "max_in_flight": 2, "max_questions": 1}, r"max_in_flight \(VQA_MAX_IN_FLIGHT\)"),
    ],
)
def test_what_cannot_be_shared_names_the_workers(flags: dict[str, int], reason: str) -> None:
    with pytest.raises(SettingsError, match=rf"setting workers \(VQA_WORKERS\): each of {flags['workers']} .*{reason}"):
        load_settings(**flags).per_worker(cpus=4)
