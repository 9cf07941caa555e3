# One archive of a finished run, for reviewers.


# Named without wildcards, so that `snakemake bundle` finds it.
rule bundle:
    input:
        report=f"{RUN}/report.html",
        manifest=f"{RUN}/manifest.json",
    output:
        archive=f"{RUN}/bundle.tar.gz",
    log:
        f"{RUN}/logs/bundle.log",
    conda:
        "../../environment.yml"
    params:
        run=SETTINGS.run,
        settings=SETTINGS.model_dump(mode="json"),
        code=source_digest("mragaudit.stages.bundle"),
    message:
        "Bundling the run for reviewers"
    script:
        "../scripts/bundle.py"
