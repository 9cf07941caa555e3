# The hook audit's grid: attacks against one RAG pipeline with defenses at its hooks, and which metric can see which.


from mragaudit.paths import GRID_TABLES
from mragaudit.resources import grid_digest

GRID = f"{RUN}/hook_audit"
GRID_DATA = grid_digest(SETTINGS.resources, SETTINGS.hook_audit.pubmedqa)


rule hook_audit:
    input:
        f"{GRID}/report.html",
        f"{GRID}/manifest.json",


rule grid_plan:
    output:
        cells="results/{run}/hook_audit/cells.jsonl",
    log:
        "results/{run}/hook_audit/logs/grid_plan.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_plan"),
        code=source_digest("mragaudit.stages.grid_plan"),
    message:
        "Planning the grid"
    script:
        "../scripts/grid_plan.py"


rule grid_documents:
    input:
        pubmedqa=SETTINGS.hook_audit.pubmedqa or [],
    output:
        documents="results/{run}/hook_audit/documents.jsonl",
        splits="results/{run}/hook_audit/splits.jsonl",
    log:
        "results/{run}/hook_audit/logs/grid_documents.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_documents"),
        code=source_digest("mragaudit.stages.grid_documents"),
        data=GRID_DATA,
    message:
        "Making the grid's corpora and canaries"
    script:
        "../scripts/grid_documents.py"


rule grid_hooks:
    output:
        hooks="results/{run}/hook_audit/hooks.json",
    log:
        "results/{run}/hook_audit/logs/grid_hooks.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_hooks"),
        code=source_digest("mragaudit.stages.grid_hooks"),
        data=GRID_DATA,
        defenses=DEFENSE_CODE,
    message:
        "Auditing the hooks of the defenses"
    script:
        "../scripts/grid_hooks.py"


rule grid_calls:
    input:
        cells=rules.grid_plan.output.cells,
        documents=rules.grid_documents.output.documents,
    output:
        calls="results/{run}/hook_audit/calls/{shard}.jsonl",
        uses="results/{run}/hook_audit/uses/{shard}.jsonl",
        metrics="results/{run}/hook_audit/metrics/grid_calls.{shard}.json",
    log:
        "results/{run}/hook_audit/logs/grid_calls.{shard}.log",
    benchmark:
        "results/{run}/hook_audit/benchmarks/grid_calls.{shard}.tsv"
    conda:
        "../../environment.yml"
    threads: threads
    resources:
        gpu=needs("grid_calls").gpus,
        mem_mb=grown(needs("grid_calls").memory_mb),
        runtime=grown(240),
    params:
        settings=used("grid_calls"),
        code=source_digest(
            "mragaudit.stages.grid_calls",
            "mragaudit.stages.jobs",
            *{BACKENDS[role] for role in ("generator", "attacker", "embedder")},
        ),
        data=GRID_DATA,
        attacks=ATTACK_CODE,
        defenses=DEFENSE_CODE,
        prompts=prompts(role="generator"),
    message:
        "Attacking every arm, shard {wildcards.shard}"
    script:
        "../scripts/grid_calls.py"


rule grid_scores:
    input:
        cells=rules.grid_plan.output.cells,
        documents=rules.grid_documents.output.documents,
        calls=expand("results/{{run}}/hook_audit/calls/{shard}.jsonl", shard=SHARDS),
        uses=expand("results/{{run}}/hook_audit/uses/{shard}.jsonl", shard=SHARDS),
    output:
        item_outcomes="results/{run}/hook_audit/scores/items.jsonl",
        nel="results/{run}/hook_audit/scores/nel.jsonl",
        candidates="results/{run}/hook_audit/scores/candidates.jsonl",
        extractions="results/{run}/hook_audit/scores/extractions.jsonl",
        call_outcomes="results/{run}/hook_audit/scores/calls.jsonl",
        benign="results/{run}/hook_audit/scores/benign.jsonl",
    log:
        "results/{run}/hook_audit/logs/grid_scores.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_scores"),
        code=source_digest("mragaudit.stages.grid_scores"),
        data=GRID_DATA,
    message:
        "Scoring the grid"
    script:
        "../scripts/grid_scores.py"


rule grid_tables:
    input:
        **rules.grid_scores.output,
        cells=rules.grid_plan.output.cells,
        documents=rules.grid_documents.output.documents,
        splits=rules.grid_documents.output.splits,
        hooks=rules.grid_hooks.output.hooks,
        uses=rules.grid_scores.input.uses,
    output:
        **{name: f"results/{{run}}/hook_audit/tables/{name}.csv" for name in GRID_TABLES},
    log:
        "results/{run}/hook_audit/logs/grid_tables.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_tables"),
        code=source_digest("mragaudit.stages.grid_tables"),
        data=GRID_DATA,
    message:
        "Evaluating the grid"
    script:
        "../scripts/grid_tables.py"


rule grid_manifest:
    input:
        **rules.grid_tables.output,
        metrics=expand("results/{{run}}/hook_audit/metrics/grid_calls.{shard}.json", shard=SHARDS),
    output:
        manifest="results/{run}/hook_audit/manifest.json",
    log:
        "results/{run}/hook_audit/logs/grid_manifest.log",
    conda:
        "../../environment.yml"
    params:
        settings=SETTINGS.model_dump(mode="json"),
        code=source_digest("mragaudit.stages.manifest"),
    message:
        "Writing the grid's manifest"
    script:
        "../scripts/grid_manifest.py"


rule grid_page:
    input:
        **rules.grid_tables.output,
        findings=rules.grid_hooks.output.hooks,
        manifest=rules.grid_manifest.output.manifest,
    output:
        html=report(
            "results/{run}/hook_audit/report.html",
            caption="../report/hook_audit.rst",
            category="Report",
            labels={"report": "hook audit"},
        ),
    log:
        "results/{run}/hook_audit/logs/grid_page.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("grid_page"),
        code=source_digest("mragaudit.stages.grid_page"),
    message:
        "Writing the hook audit's report"
    script:
        "../scripts/grid_page.py"


# Named without wildcards, so that `snakemake hook_audit_bundle` finds it.
rule hook_audit_bundle:
    input:
        report=f"{GRID}/report.html",
        manifest=f"{GRID}/manifest.json",
    output:
        archive=f"{GRID}/bundle.tar.gz",
    log:
        f"{GRID}/logs/hook_audit_bundle.log",
    conda:
        "../../environment.yml"
    params:
        run=SETTINGS.run,
        settings=SETTINGS.model_dump(mode="json"),
        code=source_digest("mragaudit.stages.bundle"),
    message:
        "Bundling the grid for reviewers"
    script:
        "../scripts/hook_audit_bundle.py"
