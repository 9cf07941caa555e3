# The top k documents for every trial.


rule retrieve:
    input:
        translations=rules.translate.output.translations,
        index=rules.index.output.index,
    output:
        retrieval="results/{run}/retrieval/{shard}.jsonl",
        metrics="results/{run}/metrics/retrieve.{shard}.json",
    log:
        "results/{run}/logs/retrieve.{shard}.log",
    benchmark:
        "results/{run}/benchmarks/retrieve.{shard}.tsv"
    # Short, and the longest job waits for it.
    priority: 2
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("retrieve").gpus,
        mem_mb=grown(needs("retrieve").memory_mb),
        runtime=grown(30),
    params:
        settings=used("retrieve"),
        code=source_digest("mragaudit.stages.retrieve", "mragaudit.stages.jobs", BACKENDS["embedder"]),
    message:
        "Retrieving, shard {wildcards.shard}"
    script:
        "../scripts/retrieve.py"
