# What a person looks at, and what it was made from.


rule figures:
    input:
        **rules.aggregate.output,
    output:
        **{
            name: report(
                f"results/{{run}}/figures/{name}.svg",
                caption="../report/figures.rst",
                category="Figures",
                labels={"figure": name},
            )
            for name in FIGURES
        },
    log:
        "results/{run}/logs/figures.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("figures"),
        code=source_digest("mragaudit.stages.figures"),
    message:
        "Drawing figures"
    script:
        "../scripts/figures.py"


rule manifest:
    input:
        trials=rules.score.output.trials,
        tables=list(rules.aggregate.output),
        figures=list(rules.figures.output),
        jobs=expand(
            "results/{{run}}/metrics/{stage}.{shard}.json",
            stage=["translate", "backtranslate", "retrieve", "judge", "generate"],
            shard=SHARDS,
        ),
        single_jobs=[rules.index.output.metrics, rules.calibrate.output.metrics],
    output:
        manifest="results/{run}/manifest.json",
    log:
        "results/{run}/logs/manifest.log",
    conda:
        "../../environment.yml"
    params:
        settings=SETTINGS.model_dump(mode="json"),
        code=source_digest("mragaudit.stages.manifest"),
        data=GUARD,
    message:
        "Writing the manifest"
    script:
        "../scripts/manifest.py"


rule report:
    input:
        documents=rules.corpus.output.documents,
        trials=rules.score.output.trials,
        tables=list(rules.aggregate.output),
        figures=list(rules.figures.output),
        manifest=rules.manifest.output.manifest,
        thresholds=rules.calibrate.output.thresholds,
        shards=rules.score.input,
    output:
        html=report(
            "results/{run}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"report": "all findings on one page"},
        ),
    log:
        "results/{run}/logs/report.log",
    conda:
        "../../environment.yml"
    params:
        settings=SETTINGS.model_dump(mode="json"),
        code=source_digest("mragaudit.stages.report"),
        data=GUARD,
    message:
        "Writing the report"
    script:
        "../scripts/report.py"
