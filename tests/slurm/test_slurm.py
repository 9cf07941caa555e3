"""The profile on a real SLURM: a whole run, jobs that end too early, a killed driver, a profile of one's own.

The cases run side by side, each under a Snakemake of its own. Those that stop a job half-way run one stage alone,
from files made before, on a generator that takes its time.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster, Driver, Job, write_case
from pipeline import Pipeline, case_settings, scripted

from mragaudit.journal import recover
from mragaudit.paths import TABLES, RunPaths

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

MODEL_RULES = {"index", "translate", "backtranslate", "retrieve", "calibrate", "judge", "generate"}
SHARDS = 4
WHOLE: dict[str, Any] = {"shards": SHARDS, "languages": ["en", "de"], "filter": {"variants": ["regex_unicode"]}}
ONE_SHARD: dict[str, Any] = {"languages": ["en", "de", "sw"], "judge": {"controls_per_class": 2}}
TARGET = "results/scripted/generations/1-of-1.jsonl"
N_CALLS = 60
"""Of the generator: 5 documents, 4 queries each, 3 languages."""
STOP_AFTER = 20
"""Calls after which a case is stopped."""
BATCH_CALLS = 16
"""Calls that may be made twice after a kill."""
OWN_PROFILE = """
default-resources: [slurm_partition=second, slurm_account=lab]
set-resources:
  - generate:gpu=1
  - generate:mem_mb=1500
  - generate:runtime=90 * attempt
set-threads: [generate=2]
slurm-jobname-prefix: ours
retries: 1
"""
# There is no accounting here, so what the plugin asks whether an account exists has no answer of its own.
SACCTMGR = "#!/bin/sh\necho lab\n"


class Case:
    """The stage `generate` of one shard, sent to the cluster; each call takes a while."""

    def __init__(self, cluster: Cluster, folder: Path, *, sleep_seconds: float, arguments: tuple[str, ...]) -> None:
        self._calls = folder / "generator.calls"
        generator = scripted("echo", sleep_seconds=sleep_seconds, count_file=str(self._calls))
        write_case(folder, {**ONE_SHARD, "roles": {"generator": generator}})
        self.paths = RunPaths(folder / "results" / "scripted")
        self.driver = Driver(
            cluster=cluster,
            folder=folder,
            arguments=("--rerun-triggers", "mtime", *arguments, "--", TARGET),
        )

    def calls(self) -> list[str]:
        """Return the calls made so far, by the hash of their prompts."""
        return self._calls.read_text(encoding="utf-8").splitlines() if self._calls.is_file() else []

    def journalled(self) -> int:
        """Return how many finished calls the journal holds."""
        return len(recover(self.paths.journal / "generate.1-of-1.jsonl").answers)

    def until_called(self, n_calls: int) -> None:
        """Wait until so many calls were made."""
        self.driver.until(lambda: len(self.calls()) >= n_calls)

    def n_answers(self) -> int:
        return len((self.paths.root / "generations" / "1-of-1.jsonl").read_bytes().splitlines())

    def require_calls_kept(self) -> None:
        """Check that every call was made, and hardly one of them twice."""
        made = Counter(self.calls())
        assert len(made) == N_CALLS
        assert made.total() - len(made) <= BATCH_CALLS
        assert self.n_answers() == N_CALLS


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all that `generate` is made from."""
    folder = tmp_path_factory.mktemp("prepared")
    Pipeline(folder, case_settings(**ONE_SHARD)).before("calibrate")
    return folder


@dataclass(frozen=True, kw_only=True, slots=True)
class Cases:
    """All cases, under way."""

    out_of_time: Case
    """Its job needs 90 seconds and has one minute, and at the second attempt three."""
    whole: Driver
    """A run of four shards."""
    cancelled: Case
    """Its job was cancelled half-way, and is not to be tried again."""
    own: Case
    """Under a profile of one's own; its job was cancelled half-way."""
    own_job: Job
    """That job, before it was cancelled."""
    killed: Case
    """Its driver was killed half-way, its job then cancelled; the driver was started again."""
    killed_job: Job
    """That job, after its driver was killed."""


@pytest.fixture(scope="module")
def cases(cluster: Cluster, prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    with ExitStack() as stack:

        def make(name: str, *arguments: str, sleep_seconds: float = 0.6) -> Case:
            folder = tmp_path_factory.mktemp(name)
            shutil.copytree(prepared / "results", folder / "results")
            case = Case(cluster, folder, sleep_seconds=sleep_seconds, arguments=arguments)
            stack.callback(case.driver.kill)
            return case

        whole = _whole(cluster, tmp_path_factory.mktemp("whole"))
        stack.callback(whole.kill)
        yield _begin(make, whole=whole)


def _begin(make: Callable[..., Case], *, whole: Driver) -> Cases:
    """Start all cases, and stop half-way those that are to be stopped."""
    runtime = "generate:runtime=2 * attempt - 1"
    out_of_time = make("time", "--retries", "1", "--set-resources", runtime, sleep_seconds=1.5)
    out_of_time.driver.start()
    # The others start once this one is at work: its minute is not to be spent on waiting for a core.
    out_of_time.until_called(1)
    cancelled, killed = make("cancelled", "--retries", "0"), make("killed")
    own = _with_own_profile(make("own", "--workflow-profile", "mine"))
    for driver in (whole, cancelled.driver, killed.driver, own.driver):
        driver.start()
    killed_job = _kill_and_resume(killed)
    _cancel(cancelled)
    return Cases(
        out_of_time=out_of_time,
        whole=whole,
        cancelled=cancelled,
        own=own,
        own_job=_cancel(own),
        killed=killed,
        killed_job=killed_job,
    )


def _whole(cluster: Cluster, folder: Path) -> Driver:
    write_case(folder, WHOLE)
    return Driver(cluster=cluster, folder=folder, arguments=("--jobs", "6", "--local-cores", "2"))


def _with_own_profile(case: Case) -> Case:
    folder = case.driver.folder
    (folder / "mine").mkdir()
    (folder / "mine" / "config.yaml").write_text(OWN_PROFILE, encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "sacctmgr").write_text(SACCTMGR, encoding="utf-8")
    (folder / "bin" / "sacctmgr").chmod(0o755)
    case.driver.environment = {"PATH": f"{folder / 'bin'}:{case.driver.cluster.environment['PATH']}"}
    return case


def _cancel(case: Case) -> Job:
    """Cancel the only job of a case once it is at work, and return what it was."""
    case.until_called(STOP_AFTER)
    (job,) = case.driver.jobs()
    case.driver.cluster.ask("scancel", job.id)
    return job


def _kill_and_resume(case: Case) -> Job:
    """Kill the driver half-way, start it again as the documentation says, and return the job that it left."""
    case.until_called(STOP_AFTER)
    run_id = case.driver.run_id()
    case.driver.kill()
    (job,) = case.driver.jobs()
    case.driver.cluster.ask("scancel", f"--name={run_id}")
    case.driver.run("--unlock")
    case.driver.start("--rerun-incomplete")
    return job


def _error(driver: Driver, status: str) -> str:
    """Return the paragraph that reports a job of a SLURM status."""
    found = re.search(
        rf"Error in rule generate:\n    message: SLURM-job '\d+' failed, SLURM status is: '{status}'.*?(?=\n\[|\Z)",
        driver.output(),
        flags=re.DOTALL,
    )
    assert found, driver.output()[-6000:]
    return found[0]


def _logs(error: str) -> list[Path]:
    """Return the logs named in an error."""
    (line,) = re.findall(r"^    log: (.*) \(check log file", error, flags=re.MULTILINE)
    return [Path(name) for name in line.split(", ")]


def test_a_cancelled_job_is_reported_with_its_logs_and_not_sent_again_without_retries(cases: Cases) -> None:
    case = cases.cancelled
    assert case.driver.wait() == 1
    assert [job.state for job in case.driver.jobs()] == ["CANCELLED"]
    ours, slurms = _logs(_error(case.driver, "CANCELLED"))
    assert "60 calls, 0 in the journal" in (case.driver.folder / ours).read_text(encoding="utf-8")
    assert "CANCELLED AT" in slurms.read_text(encoding="utf-8")
    assert not (case.driver.folder / TARGET).exists()


def test_the_same_command_after_a_cancelled_job_makes_the_calls_that_are_left(cases: Cases) -> None:
    kept = cases.cancelled.journalled()
    assert STOP_AFTER - 1 <= kept < N_CALLS
    cases.cancelled.driver.run()
    cases.cancelled.require_calls_kept()


def test_a_profile_of_ones_own_wins_and_chooses_account_partition_and_resources(cases: Cases) -> None:
    job = cases.own_job
    assert job.name.startswith("ours_")
    assert (job.partition, job.account) == ("second", "lab")
    assert (job.gpus, job.memory, job.limit, job.cpus) == ("gres:gpu:1", "1500M", "1:30:00", "2")


def test_a_cancelled_job_is_sent_again_when_retries_say_so(cases: Cases) -> None:
    assert cases.own.driver.wait() == 0, cases.own.driver.output()[-6000:]
    assert [job.state for job in cases.own.driver.jobs()] == ["CANCELLED", "COMPLETED"]
    cases.own.require_calls_kept()


def test_a_killed_driver_leaves_its_job_running_and_resumes_once_that_is_cancelled(cases: Cases) -> None:
    assert cases.killed_job.state == "RUNNING"
    assert cases.killed.driver.wait() == 0, cases.killed.driver.output()[-6000:]
    cases.killed.require_calls_kept()


def test_four_shards_go_through_sbatch_to_their_report(cases: Cases) -> None:
    assert cases.whole.wait() == 0, cases.whole.output()[-6000:]
    assert {job.state for job in cases.whole.jobs()} == {"COMPLETED"}
    run = RunPaths(cases.whole.folder / "results" / "scripted")
    assert all(path.stat().st_size > 0 for path in (run.report, run.manifest, run.trials))
    assert all(run.table(name).is_file() for name in TABLES)


def test_rows_made_on_the_cluster_are_those_made_here(cases: Cases, tmp_path: Path) -> None:
    assert cases.whole.wait() == 0
    here = Pipeline(tmp_path, case_settings(**WHOLE))
    here.before("aggregate")
    rows = (cases.whole.folder / "results" / "scripted" / "trials.jsonl").read_bytes()
    assert rows.count(b"\n") == 5 * 4 * 2 + 8 * 2
    assert rows == here.files.trials.read_bytes()


def test_light_rules_run_where_the_command_was_typed(cases: Cases) -> None:
    sent = Counter(job.rule for job in cases.whole.jobs())
    assert sent == {rule: 1 if rule in ("index", "calibrate") else SHARDS for rule in MODEL_RULES}


def test_jobs_ask_for_what_their_rules_state(cases: Cases) -> None:
    asked = {job.rule: (job.cpus, job.memory, job.limit, job.gpus) for job in cases.whole.jobs()}
    assert asked == {
        "index": ("4", "1000M", "30:00", "N/A"),
        "translate": ("4", "1000M", "1:00:00", "N/A"),
        "backtranslate": ("4", "2000M", "1:00:00", "N/A"),
        "retrieve": ("4", "1000M", "30:00", "N/A"),
        "calibrate": ("4", "1000M", "30:00", "N/A"),
        "judge": ("4", "1000M", "2:00:00", "N/A"),
        "generate": ("4", "1000M", "2:00:00", "N/A"),
    }


def test_the_shipped_profile_forces_no_account_and_no_partition(cases: Cases) -> None:
    assert {(job.partition, job.account) for job in cases.whole.jobs()} == {("debug", "(null)")}


def test_a_job_out_of_time_is_reported_with_its_logs_and_sent_again_with_more_time(cases: Cases) -> None:
    driver = cases.out_of_time.driver
    assert driver.wait() == 0, driver.output()[-6000:]
    jobs = driver.jobs()
    assert [(job.state, job.limit) for job in jobs] == [("TIMEOUT", "1:00"), ("COMPLETED", "3:00")]
    ours, slurms = _logs(_error(driver, "TIMEOUT"))
    assert str(ours) == "results/scripted/logs/generate.1-of-1.log"
    assert slurms.name == f"{jobs[0].id}.log"
    assert "DUE TO TIME LIMIT" in slurms.read_text(encoding="utf-8")


def test_a_job_sent_again_makes_the_calls_that_are_left(cases: Cases) -> None:
    cases.out_of_time.require_calls_kept()
    log = (cases.out_of_time.paths.root / "logs" / "generate.1-of-1.log").read_text(encoding="utf-8")
    (kept,) = re.findall(r"60 calls, (\d+) in the journal", log)
    assert 0 < int(kept) < N_CALLS
