# Answers to every trial, and what the output filters say of them.


rule generate:
    input:
        documents=rules.corpus.output.documents,
        all_queries=rules.queries.output.shards,
        translations=rules.translate.output.translations,
        retrieval=rules.retrieve.output.retrieval,
    output:
        generations="results/{run}/generations/{shard}.jsonl",
        repeats="results/{run}/repeats/generate/{shard}.jsonl",
        metrics="results/{run}/metrics/generate.{shard}.json",
    log:
        "results/{run}/logs/generate.{shard}.log",
    benchmark:
        "results/{run}/benchmarks/generate.{shard}.tsv"
    # The longest jobs first: no core idles while the last of them runs.
    priority: 1
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("generate").gpus,
        mem_mb=grown(needs("generate").memory_mb),
        runtime=grown(120),
    params:
        settings=used("generate"),
        code=source_digest("mragaudit.stages.generate", "mragaudit.stages.jobs", BACKENDS["generator"]),
        data=prompts(role="generator"),
    message:
        "Answering every trial, shard {wildcards.shard}"
    script:
        "../scripts/generate.py"


rule filter:
    input:
        generations=rules.generate.output.generations,
    output:
        filtered="results/{run}/filtered/{filter}/{shard}.jsonl",
    log:
        "results/{run}/logs/filter.{filter}.{shard}.log",
    conda:
        "../../environment.yml"
    params:
        code=source_digest("mragaudit.stages.filter"),
    message:
        "Filtering answers with {wildcards.filter}, shard {wildcards.shard}"
    script:
        "../scripts/filter.py"
