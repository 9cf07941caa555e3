"""What models lack on this machine is said once a role, for the stages that will run, and refused nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import Settings, load_settings
from mragaudit.stages import readiness
from mragaudit.stages.readiness import lacking, print_lacking

END = "fail where it is missing, unless the journal holds all their calls"


def settings_with(**options: Any) -> Settings:
    role = {"backend": "openai_http", "model": "m", "sha256": None, "options": options}
    scripted = {"backend": "scripted"}
    others = {"translator": scripted, "back_translator": scripted, "generator": scripted}
    return load_settings({"roles": {**others, "judge": role, "embedder": {"backend": "hashing"}}})


def test_an_unset_key_is_said_with_role_variable_and_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    settings = settings_with(base_url="https://host/v1", api_key_env="NO_SUCH_KEY")
    said = "roles.judge: the environment variable NO_SUCH_KEY (api_key_env) is not set here, or empty"
    assert lacking(settings, stages=["calibrate", "generate", "judge", "score"]) == [
        f"warning: {said}; jobs of calibrate and judge {END}"
    ]
    monkeypatch.setenv("NO_SUCH_KEY", "abc")
    assert lacking(settings, stages=["judge"]) == []


def test_a_missing_file_of_certificates_is_said(tmp_path: Path) -> None:
    settings = settings_with(base_url="https://host/v1", ca_file=str(tmp_path / "no.pem"))
    assert lacking(settings, stages=["judge"]) == [
        f'warning: roles.judge: there is no file "{tmp_path}/no.pem" (ca_file) here; jobs of judge {END}'
    ]


def test_a_missing_package_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        readiness, "missing_hint", lambda kind, name: "package x" if (kind, name) == ("embedder", "hashing") else None
    )
    print_lacking(settings_with(base_url="http://127.0.0.1:1/v1"), stages=["index", "judge"])
    assert capsys.readouterr().err == f"warning: roles.embedder: package x; jobs of index {END}\n"


def test_nothing_is_said_of_stages_that_do_not_run() -> None:
    settings = settings_with(base_url="https://host/v1", api_key_env="NO_SUCH_KEY")
    assert lacking(settings, stages=["score", "aggregate", "translate"]) == []
