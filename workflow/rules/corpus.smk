# The documents and their index.


rule corpus:
    output:
        documents="results/{run}/corpus/documents.jsonl",
    log:
        "results/{run}/logs/corpus.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("corpus"),
        code=source_digest("mragaudit.stages.corpus"),
        data=corpus_digest(SETTINGS.resources, SETTINGS.corpus.source),
    message:
        "Planting documents"
    script:
        "../scripts/corpus.py"


rule index:
    input:
        documents=rules.corpus.output.documents,
    output:
        index=directory("results/{run}/index"),
        metrics="results/{run}/metrics/index.all.json",
    log:
        "results/{run}/logs/index.log",
    benchmark:
        "results/{run}/benchmarks/index.all.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("index").gpus,
        mem_mb=grown(needs("index").memory_mb),
        runtime=grown(30),
    params:
        settings=used("index"),
        code=source_digest("mragaudit.stages.index", BACKENDS["embedder"]),
    message:
        "Embedding the documents"
    script:
        "../scripts/index.py"
