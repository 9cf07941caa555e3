# Queries, and their way into every language and back.


rule queries:
    input:
        documents=rules.corpus.output.documents,
    output:
        shards=expand("results/{{run}}/queries/{shard}.jsonl", shard=SHARDS),
    log:
        "results/{run}/logs/queries.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("queries"),
        code=source_digest("mragaudit.stages.queries"),
        data=queries_digest(SETTINGS.resources, SETTINGS.queries.source, SETTINGS.languages),
    message:
        "Writing queries and controls"
    script:
        "../scripts/queries.py"


rule translate:
    input:
        documents=rules.corpus.output.documents,
        queries="results/{run}/queries/{shard}.jsonl",
        all_queries=rules.queries.output.shards,
    output:
        translations="results/{run}/translations/{shard}.jsonl",
        repeats="results/{run}/repeats/translate/{shard}.jsonl",
        metrics="results/{run}/metrics/translate.{shard}.json",
    log:
        "results/{run}/logs/translate.{shard}.log",
    benchmark:
        "results/{run}/benchmarks/translate.{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("translate").gpus,
        mem_mb=grown(needs("translate").memory_mb),
        runtime=grown(60),
    params:
        settings=used("translate"),
        code=source_digest("mragaudit.stages.translate", "mragaudit.stages.jobs", BACKENDS["translator"]),
        data=prompts(role="translator"),
        languages=LANGUAGES,
    message:
        "Translating queries, shard {wildcards.shard}"
    script:
        "../scripts/translate.py"


rule backtranslate:
    input:
        all_queries=rules.queries.output.shards,
        translations=rules.translate.output.translations,
    output:
        backtranslations="results/{run}/backtranslations/{shard}.jsonl",
        repeats="results/{run}/repeats/backtranslate/{shard}.jsonl",
        metrics="results/{run}/metrics/backtranslate.{shard}.json",
    log:
        "results/{run}/logs/backtranslate.{shard}.log",
    benchmark:
        "results/{run}/benchmarks/backtranslate.{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("backtranslate").gpus,
        mem_mb=grown(needs("backtranslate").memory_mb),
        runtime=grown(60),
    params:
        settings=used("backtranslate"),
        code=source_digest(
            "mragaudit.stages.backtranslate",
            "mragaudit.stages.jobs",
            BACKENDS["back_translator"],
            BACKENDS["embedder"],
        ),
        data=prompts(role="back_translator"),
        languages=LANGUAGES,
    message:
        "Translating queries back, shard {wildcards.shard}"
    script:
        "../scripts/backtranslate.py"
