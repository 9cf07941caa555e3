"""Wrong settings of the monitor are refused with the key, what stands there and what would be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mragaudit import cli
from mragaudit.errors import ConfigError
from mragaudit.monitor import MonitorSettings, read_monitor_settings
from mragaudit.monitor.defaults import SCHEMA_PATH, SETTINGS_PATH, render_monitor_schema, render_monitor_settings

ROOT = Path(__file__).resolve().parents[3]


def error_of(tmp_path: Path, text: str) -> str:
    """Return what is wrong with a settings file."""
    path = tmp_path / "monitor.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_monitor_settings(path)
    return str(caught.value).removeprefix(f"{path}: ")


def test_the_generated_settings_load_back_to_the_defaults() -> None:
    loaded = read_monitor_settings(ROOT / SETTINGS_PATH)
    assert loaded == MonitorSettings()
    assert (loaded.roles, loaded.alerts.webhook) == ({}, None)


def test_the_generated_files_hold_what_the_settings_say() -> None:
    assert (ROOT / SETTINGS_PATH).read_text(encoding="utf-8") == render_monitor_settings()
    assert (ROOT / SCHEMA_PATH).read_text(encoding="utf-8") == render_monitor_schema()


def test_the_examples_in_the_generated_header_are_settings() -> None:
    header = [line[2:] for line in render_monitor_settings().partition("\n\n")[0].splitlines()]
    examples = yaml.safe_load("\n".join(line for line in header if line.startswith(("  ", "roles", "alerts"))))
    settings = MonitorSettings.model_validate_json(json.dumps(examples))
    assert (settings.roles["support"].max_queries, settings.roles["support"].sensitivity_baseline) == (200, 0.6)
    assert settings.alerts.webhook is not None


def test_every_default_stands_in_the_generated_file_with_its_description() -> None:
    text = render_monitor_settings()
    assert "    # learn from the user's own preceding weeks\n    user: true\n" in text
    assert text.count("\n    # ") == len(MonitorSettings().sensitivity.baseline.model_dump())


def test_config_check_fails_when_a_generated_monitor_file_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / SETTINGS_PATH).parent.mkdir(parents=True)
    assert CliRunner().invoke(cli.app, ["config", "--write"]).exit_code == 0
    assert CliRunner().invoke(cli.app, ["config", "--check"]).exit_code == 0
    (tmp_path / SETTINGS_PATH).write_text("levels: [a, b]\n", encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["config", "--check"])
    assert result.exit_code == 1
    assert "out of date: resources/monitor/monitor.yaml; write with: mragaudit config --write" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("volum: {}", 'config key "volum" is unknown; did you mean "volume"?'),
        (
            "volume: {max_query: 5}",
            'config key "volume.max_query" is unknown; did you mean "max_queries"?',
        ),
        (
            "sensitivity: {baseline: {marginn: 0.1}}",
            'config key "sensitivity.baseline.marginn" is unknown; did you mean "margin"?',
        ),
        (
            "roles: {support: {max_querys: 5}}",
            'config key "roles.support.max_querys" is unknown; did you mean "max_queries"?',
        ),
        ("alerts: {webhook: {uri: x}}", 'config key "alerts.webhook.uri" is unknown; did you mean "url"?'),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_at_every_level(tmp_path: Path, text: str, message: str) -> None:
    assert message in error_of(tmp_path, text).splitlines()


@pytest.mark.parametrize("weight", [".nan", ".inf", "-.inf", "-0.2"])
def test_a_weight_must_be_a_number_of_at_least_0(tmp_path: Path, weight: str) -> None:
    text = f"composite: {{weights: {{volume: {weight}, coverage: 0.5, sensitivity: 0.5}}}}"
    assert 'config key "composite.weights' in error_of(tmp_path, text)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"volume": 0.4, "coverage": 0.4, "sensitivity": 0.4}, "weights add up to 1.2; they must add up to 1"),
        ({"volume": 0.0, "coverage": 0.0, "sensitivity": 0.0}, "weights add up to 0; they must add up to 1"),
        ({"volume": 0.5, "coverage": 0.5}, "weights need exactly the keys volume, coverage and sensitivity"),
    ],
)
def test_weights_are_three_and_add_up_to_1(tmp_path: Path, weights: dict[str, float], message: str) -> None:
    text = yaml.safe_dump({"composite": {"weights": weights}})
    assert error_of(tmp_path, text) == f'config key "composite.weights": {message}'


def test_a_weight_of_an_unknown_signal_is_refused(tmp_path: Path) -> None:
    text = "composite: {weights: {volume: 0.4, coverage: 0.35, sensitivty: 0.25}}"
    assert "sensitivty" in error_of(tmp_path, text)


@pytest.mark.parametrize("section", ["volume", "coverage", "sensitivity", "collective"])
@pytest.mark.parametrize("seconds", ["-3600", "0", ".nan", ".inf", "'3600'", "400000000"])
def test_a_window_must_be_a_length_of_time(tmp_path: Path, section: str, seconds: str) -> None:
    assert f'config key "{section}.window_seconds"' in error_of(tmp_path, f"{section}: {{window_seconds: {seconds}}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "composite: {release_at: 0.9}",
            'config key "composite": release_at (0.9) lies above throttle_at (0.7)',
        ),
        ("composite: {alert_at: 0.8}", 'config key "composite": alert_at (0.8) lies above throttle_at (0.7)'),
        (
            "coverage: {sub_window_seconds: 60}",
            'config key "coverage": the window holds 10081 sub-windows; 64 are the most: lengthen sub_window_seconds',
        ),
        ("levels: [public, public]", 'config key "levels": a level stands twice'),
        (
            "sensitive_from: secret",
            'config: sensitive_from is "secret"; levels are: public, internal, confidential, restricted',
        ),
        ("coverage: {max_share: 1.1}", 'config key "coverage.max_share" is 1.1; it should be less than or equal to 1'),
        ("volume: {max_queries: 0}", 'config key "volume.max_queries" is 0; it should be greater than or equal to 1'),
        ("volume: {max_queries: 2.5}", 'config key "volume.max_queries" is 2.5; it should be a valid integer'),
        (
            "store: {on_failure: shut}",
            "config key \"store.on_failure\" is 'shut'; it should be 'open' or 'closed'",
        ),
        ("coverage: {mode: exakt}", "config key \"coverage.mode\" is 'exakt'; it should be 'exact' or 'hyperloglog'"),
        (
            "roles: {support: {sensitivity_baseline: 1.5}}",
            'config key "roles.support.sensitivity_baseline" is 1.5; it should be less than or equal to 1',
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(tmp_path: Path, text: str, message: str) -> None:
    assert error_of(tmp_path, text) == message


def test_every_fault_of_a_file_is_a_line(tmp_path: Path) -> None:
    message = error_of(tmp_path, "volum: {}\nthrottle: {delay_seconds: -1}\ncoverage: {max_share: .nan}")
    assert len(message.splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a list", "a config is a mapping of keys, not a list"),
        ("volume: [", "not readable as UTF-8 YAML"),
        ("volume: {}\nvolume: {}", 'line 2: the key "volume" stands there already on line 1'),
        ("volume: 3", 'config key "volume" is 3'),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(tmp_path: Path, text: str, told: str) -> None:
    assert told in error_of(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: .*no such config file"):
        read_monitor_settings(tmp_path / "absent.yaml")


@pytest.mark.parametrize("changed", [{"max_share": 0.5}, {"mode": "hyperloglog"}])
def test_a_section_needs_only_the_keys_that_differ(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text(yaml.safe_dump({"coverage": changed}), encoding="utf-8")
    settings = read_monitor_settings(path)
    defaults = MonitorSettings()
    assert settings.coverage == defaults.coverage.model_copy(update=changed)
    assert settings.volume == defaults.volume
