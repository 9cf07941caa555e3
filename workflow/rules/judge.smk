# The input judge: its thresholds first, then every variant's verdict on every trial.


rule calibrate:
    input:
        queries=rules.queries.output.shards,
    output:
        thresholds="results/{run}/judgements/thresholds.json",
        metrics="results/{run}/metrics/calibrate.all.json",
    log:
        "results/{run}/logs/calibrate.log",
    benchmark:
        "results/{run}/benchmarks/calibrate.all.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("calibrate").gpus,
        mem_mb=grown(needs("calibrate").memory_mb),
        runtime=grown(30),
    params:
        settings=used("calibrate"),
        code=source_digest("mragaudit.stages.calibrate", "mragaudit.stages.jobs", BACKENDS["judge"]),
        data=prompts(role="judge") + GUARD,
    message:
        "Calibrating the judge on English controls"
    script:
        "../scripts/calibrate.py"


rule judge:
    input:
        documents=rules.corpus.output.documents,
        queries="results/{run}/queries/{shard}.jsonl",
        all_queries=rules.queries.output.shards,
        translations=rules.translate.output.translations,
        backtranslations=rules.backtranslate.output.backtranslations,
        retrieval=rules.retrieve.output.retrieval,
        thresholds=rules.calibrate.output.thresholds,
    output:
        variants=expand("results/{{run}}/judgements/{judge}/{{shard}}.jsonl", judge=JUDGES),
        repeats="results/{run}/repeats/judge/{shard}.jsonl",
        metrics="results/{run}/metrics/judge.{shard}.json",
    log:
        "results/{run}/logs/judge.{shard}.log",
    benchmark:
        "results/{run}/benchmarks/judge.{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("judge").gpus,
        mem_mb=grown(needs("judge").memory_mb),
        runtime=grown(120),
    params:
        settings=used("judge"),
        code=source_digest("mragaudit.stages.judge", "mragaudit.stages.jobs", BACKENDS["judge"]),
        data=prompts(role="judge") + GUARD,
    message:
        "Judging in all variants, shard {wildcards.shard}"
    script:
        "../scripts/judge.py"
