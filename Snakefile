# mragaudit: where does a multilingual RAG system leak personal data?
#
# Path grammar, all below results/{run}/ ({run} and the number of shards come from the config):
#   corpus/documents.jsonl                      the documents, one planted item each
#   queries/{shard}.jsonl                       attacks, benign questions, judge controls
#   translations/{shard}.jsonl                  a trial is one query in one language
#   backtranslations/{shard}.jsonl              non-English trials back in English
#   index/                                      vectors and ids
#   retrieval/{shard}.jsonl                     top k, rank of the gold document
#   judgements/thresholds.json                  margins above which each judge variant blocks
#   judgements/{judge}/{shard}.jsonl            verdicts
#   generations/{shard}.jsonl                   answers, whatever any judge said
#   filtered/{filter}/{shard}.jsonl             what each output filter says of them
#   repeats/{stage}/{shard}.jsonl               what model stages gave when they asked a sample once more
#   trials.jsonl, noise.jsonl, tables/*.csv     one row a trial; one a repeated call; the findings
#   figures/*.svg, report.html, manifest.json   what a person looks at; what it was made from
#   bundle.tar.gz                               all of it in one archive, made only when asked for (`snakemake bundle`)
#   monitor/traffic/{part}.jsonl                the queries that are replayed through the exfiltration monitor
#   monitor/replay/{part}.jsonl                 what the monitor counted; part: development, check, log
#   monitor/closed_loop.jsonl                   what attackers were given with throttling in force
#   monitor/tables/*.csv, monitor/report.html   the findings; made by the target `monitor`
#   hook_audit/cells.jsonl                      which attack meets which defense; made by the target `hook_audit`
#   hook_audit/documents.jsonl, splits.jsonl    its corpora and canaries; blind baselines of membership inference
#   hook_audit/calls/{shard}.jsonl, uses/       every question and reply, as only the auditor sees them; what cells spent
#   hook_audit/hooks.json                       where its defenses act, by source and by a sandboxed probe
#   hook_audit/scores/*.jsonl, tables/*.csv     what was recovered; the findings
#   hook_audit/report.html, manifest.json       what a person looks at; journal/, metrics/, logs/ stand beside
#   hook_audit/bundle.tar.gz                    all of it in one archive (`snakemake hook_audit_bundle`)
#   journal/{stage}.{shard}.jsonl               finished model calls; no declared output, so never deleted
#   metrics/, benchmarks/, logs/                what each job measured and said
#
# Users lay their own config on top: snakemake --cores all --configfile my.yaml

from snakemake.utils import min_version

min_version("9.15")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/queries.smk"
include: "workflow/rules/retrieval.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/generation.smk"
include: "workflow/rules/scoring.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/bundle.smk"
include: "workflow/rules/monitor.smk"
include: "workflow/rules/hook_audit.smk"


report: "workflow/report/workflow.rst"


# On a cluster these run where the command was typed: each takes seconds, and a place in a queue takes minutes.
localrules:
    all,
    corpus,
    queries,
    filter,
    score,
    aggregate,
    figures,
    manifest,
    report,
    bundle,
    monitor,
    hook_audit,
    grid_plan,
    grid_documents,
    grid_hooks,
    grid_scores,
    grid_tables,
    grid_manifest,
    grid_page,
    hook_audit_bundle,


rule all:
    default_target: True
    input:
        f"results/{SETTINGS.run}/report.html",
        f"results/{SETTINGS.run}/manifest.json",


onstart:
    refuse_hopeless(workflow.dag_settings.forcerun)
    print_plan(SETTINGS, results=Path("results"), targets=targets())
    print_lacking(SETTINGS, stages={job.rule.name for job in workflow.dag.needrun_jobs()})


onerror:
    print("The run stopped. Finished model calls are kept; type the same command again to resume.")
