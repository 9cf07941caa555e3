"""The whole pipeline in this process, stage by stage, as the rules of the Snakefile call it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mragaudit.config import Settings, load_settings, settings_from_slice, settings_slice
from mragaudit.config.load import merge
from mragaudit.paths import FIGURES, TABLES, RunPaths
from mragaudit.runlog import run_log
from mragaudit.stages import (
    aggregate,
    backtranslate,
    calibrate,
    corpus,
    figures,
    generate,
    index,
    judge,
    manifest,
    queries,
    report,
    retrieve,
    score,
    translate,
)
from mragaudit.stages import filter as filter_stage
from mragaudit.stages.jobs import ModelJob
from mragaudit.stages.preflight import check_run

REPOSITORY = Path(__file__).parents[2]
CASES = REPOSITORY / "tests" / "cases"
EXAMPLES = REPOSITORY / "resources" / "examples"
SMALL: dict[str, Any] = {"judge": {"controls_per_class": 2}, "statistics": {"resamples": 100}}
"""What keeps a run of all stages within seconds."""


def scripted_settings(**over: Any) -> Settings:
    """Return the settings of the scripted case with sections laid on top."""
    base = yaml.safe_load((CASES / "scripted" / "config.yaml").read_text(encoding="utf-8"))
    return load_settings(merge(merge(base, SMALL), over))


def run_stages(settings: Settings, *, results: Path) -> RunPaths:
    """Run every stage and return where its files are; an error of ours ends in SystemExit, as in a job."""
    check_run(settings, results=results)
    return Pipeline(settings, results=results).run()


class Pipeline:
    """All stages of one run; every stage sees the slice of the settings that its rule hands it."""

    def __init__(self, settings: Settings, *, results: Path) -> None:
        self.settings = settings
        self.results = results
        self.paths = RunPaths(results / settings.run)

    def run(self) -> RunPaths:
        self._before_shards()
        for shard in self.settings.shard_names:
            self._queries_of(shard)
        self._calibrate()
        for shard in self.settings.shard_names:
            self._guards_and_answers(shard)
        self._after_shards()
        return self.paths

    def _slice(self, stage: str) -> Settings:
        return settings_from_slice(settings_slice(self.settings, stage))

    def _log(self, name: str) -> Any:
        return run_log(self.paths.root / "logs" / f"{name}.log")

    def _job(self, stage: str, shard: str, *, journal: str | None = None) -> ModelJob:
        return ModelJob(
            stage=stage, run=self.settings.run, shard=shard, threads=1, journal=journal, results=self.results
        )

    def _file(self, folder: str, shard: str) -> Path:
        return self.paths.shards(folder, [shard])[0]

    def _all_queries(self) -> list[Path]:
        return self.paths.shards("queries", self.settings.shard_names)

    def _before_shards(self) -> None:
        names = self.settings.shard_names
        with self._log("corpus"):
            corpus.run(documents=self.paths.documents, run_folder=self.paths.root, settings=self._slice("corpus"))
        with self._log("queries"):
            shards = dict(zip(names, self.paths.shards("queries", names), strict=True))
            queries.run(documents=self.paths.documents, shards=shards, settings=self._slice("queries"))
        with self._log("index"), self._job("index", "all") as job:
            index.run(
                documents=self.paths.documents,
                folder=self.paths.root / "index",
                job=job,
                settings=self._slice("index"),
            )

    def _queries_of(self, shard: str) -> None:
        with self._log(f"translate.{shard}"), self._job("translate", shard) as job:
            translate.run(
                documents=self.paths.documents,
                queries=self._file("queries", shard),
                translations=self._file("translations", shard),
                all_queries=self._all_queries(),
                repeats=self._file("repeats/translate", shard),
                job=job,
                settings=self._slice("translate"),
            )
        with self._log(f"backtranslate.{shard}"), self._job("backtranslate", shard) as job:
            backtranslate.run(
                translations=self._file("translations", shard),
                backtranslations=self._file("backtranslations", shard),
                all_queries=self._all_queries(),
                repeats=self._file("repeats/backtranslate", shard),
                job=job,
                settings=self._slice("backtranslate"),
            )
        with self._log(f"retrieve.{shard}"), self._job("retrieve", shard) as job:
            retrieve.run(
                translations=self._file("translations", shard),
                index_folder=self.paths.root / "index",
                retrieval=self._file("retrieval", shard),
                job=job,
                settings=self._slice("retrieve"),
            )

    def _calibrate(self) -> None:
        with self._log("calibrate"), self._job("calibrate", "all", journal="judge.calibration") as job:
            calibrate.run(
                queries=self.paths.shards("queries", self.settings.shard_names),
                thresholds=self.paths.thresholds,
                job=job,
                settings=self._slice("calibrate"),
            )

    def _guards_and_answers(self, shard: str) -> None:
        variants = self.settings.judge.variants
        with self._log(f"judge.{shard}"), self._job("judge", shard) as job:
            judge.run(
                inputs=judge.Inputs(
                    documents=self.paths.documents,
                    queries=self._file("queries", shard),
                    all_queries=self._all_queries(),
                    translations=self._file("translations", shard),
                    backtranslations=self._file("backtranslations", shard),
                    retrieval=self._file("retrieval", shard),
                    thresholds=self.paths.thresholds,
                ),
                outputs={name: self._file(f"judgements/{name}", shard) for name in variants},
                repeats=self._file("repeats/judge", shard),
                job=job,
                settings=self._slice("judge"),
            )
        with self._log(f"generate.{shard}"), self._job("generate", shard) as job:
            generate.run(
                documents=self.paths.documents,
                translations=self._file("translations", shard),
                retrieval=self._file("retrieval", shard),
                generations=self._file("generations", shard),
                all_queries=self._all_queries(),
                repeats=self._file("repeats/generate", shard),
                job=job,
                settings=self._slice("generate"),
            )
        for name in self.settings.filter.variants:
            with self._log(f"filter.{name}.{shard}"):
                filter_stage.run(
                    generations=self._file("generations", shard),
                    filtered=self._file(f"filtered/{name}", shard),
                    variant=name,
                )

    def _after_shards(self) -> None:
        tables = {name: self.paths.table(name) for name in TABLES}
        drawn = {name: self.paths.figure(name) for name in FIGURES}
        with self._log("score"):
            scored = {"trials": self.paths.trials, "noise": self.paths.noise}
            score.run(run_folder=self.paths.root, **scored, settings=self._slice("score"))
        with self._log("aggregate"):
            aggregate.run(**scored, tables=tables, settings=self._slice("aggregate"))
        with self._log("figures"):
            figures.run(tables=tables, figures=drawn, settings=self._slice("figures"))
        with self._log("manifest"):
            manifest.run(run_folder=self.paths.root, manifest=self.paths.manifest, settings=self.settings)
        with self._log("report"):
            report.run(run_folder=self.paths.root, html=self.paths.report, settings=self.settings)
