# From all stages to one row a trial, and from trials to tables. No model is needed from here on.


rule score:
    input:
        documents=rules.corpus.output.documents,
        queries=rules.queries.output.shards,
        translations=expand("results/{{run}}/translations/{shard}.jsonl", shard=SHARDS),
        backtranslations=expand("results/{{run}}/backtranslations/{shard}.jsonl", shard=SHARDS),
        retrieval=expand("results/{{run}}/retrieval/{shard}.jsonl", shard=SHARDS),
        generations=expand("results/{{run}}/generations/{shard}.jsonl", shard=SHARDS),
        judgements=expand("results/{{run}}/judgements/{judge}/{shard}.jsonl", judge=JUDGES, shard=SHARDS),
        filtered=expand("results/{{run}}/filtered/{filter}/{shard}.jsonl", filter=FILTERS, shard=SHARDS),
        repeats=expand("results/{{run}}/repeats/{stage}/{shard}.jsonl", stage=REPEATED_STAGES, shard=SHARDS),
    output:
        trials="results/{run}/trials.jsonl",
        noise="results/{run}/noise.jsonl",
    log:
        "results/{run}/logs/score.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("score"),
        code=source_digest("mragaudit.stages.score"),
        data=prompts(role="generator"),
    message:
        "Scoring every trial"
    script:
        "../scripts/score.py"


rule aggregate:
    input:
        trials=rules.score.output.trials,
        noise=rules.score.output.noise,
    output:
        **{
            name: report(
                f"results/{{run}}/tables/{name}.csv",
                caption=f"../report/{name.split('_')[0]}.rst",
                category="Tables",
                labels={"table": name},
            )
            for name in TABLES
        },
    log:
        "results/{run}/logs/aggregate.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("aggregate"),
        code=source_digest("mragaudit.stages.aggregate"),
        data=GUARD,
    message:
        "Aggregating trials into tables"
    script:
        "../scripts/aggregate.py"
