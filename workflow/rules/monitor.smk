# The exfiltration monitor: traffic, its replay in simulated time, and what that shows.


from mragaudit.paths import MONITOR_TABLES
from mragaudit.provenance import PACKAGE_ROOT, tree_sha256
from mragaudit.stages.monitor_files import monitor_files

MONITOR_LOG = SETTINGS.monitor.access_log
MONITOR_PARTS = ["development", "check", *(["log"] if MONITOR_LOG else [])]
MONITOR_LUA = tree_sha256(PACKAGE_ROOT / "monitor" / "lua")


wildcard_constraints:
    seeds="development|check",
    part="development|check|log",


rule monitor:
    input:
        f"{RUN}/monitor/report.html",


rule monitor_traffic:
    input:
        documents=rules.corpus.output.documents,
        translations=expand("results/{{run}}/translations/{shard}.jsonl", shard=SHARDS),
        retrieval=expand("results/{{run}}/retrieval/{shard}.jsonl", shard=SHARDS),
        index=rules.index.output.index,
        trials=rules.score.output.trials if SETTINGS.monitor.answers else [],
        files=lambda wildcards: monitor_files(SETTINGS),
    output:
        traffic="results/{run}/monitor/traffic/{seeds}.jsonl",
    log:
        "results/{run}/logs/monitor_traffic.{seeds}.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_traffic"),
        code=source_digest("mragaudit.stages.monitor_traffic"),
    message:
        "Making traffic for the monitor, {wildcards.seeds} seeds"
    script:
        "../scripts/monitor_traffic.py"


rule monitor_log:
    input:
        log=MONITOR_LOG or [],
    output:
        traffic="results/{run}/monitor/traffic/log.jsonl",
    log:
        "results/{run}/logs/monitor_log.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_log"),
        code=source_digest("mragaudit.stages.monitor_log"),
    message:
        "Reading the access log"
    script:
        "../scripts/monitor_log.py"


rule monitor_replay:
    input:
        traffic="results/{run}/monitor/traffic/{part}.jsonl",
        files=lambda wildcards: monitor_files(SETTINGS),
    output:
        counts="results/{run}/monitor/replay/{part}.jsonl",
    log:
        "results/{run}/logs/monitor_replay.{part}.log",
    benchmark:
        "results/{run}/benchmarks/monitor_replay.{part}.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_replay"),
        code=source_digest("mragaudit.stages.monitor_replay"),
        data=MONITOR_LUA,
    message:
        "Replaying traffic, {wildcards.part}"
    script:
        "../scripts/monitor_replay.py"


rule monitor_closed_loop:
    input:
        traffic="results/{run}/monitor/traffic/check.jsonl",
        counts="results/{run}/monitor/replay/check.jsonl",
        files=lambda wildcards: monitor_files(SETTINGS),
    output:
        delivered="results/{run}/monitor/closed_loop.jsonl",
    log:
        "results/{run}/logs/monitor_closed_loop.log",
    benchmark:
        "results/{run}/benchmarks/monitor_closed_loop.tsv"
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_closed_loop"),
        code=source_digest("mragaudit.stages.monitor_closed_loop"),
        data=MONITOR_LUA,
    message:
        "Replaying attackers with throttling in force"
    script:
        "../scripts/monitor_closed_loop.py"


rule monitor_tables:
    input:
        traffic=expand("results/{{run}}/monitor/traffic/{part}.jsonl", part=MONITOR_PARTS),
        counts=expand("results/{{run}}/monitor/replay/{part}.jsonl", part=MONITOR_PARTS),
        delivered=rules.monitor_closed_loop.output.delivered,
        files=lambda wildcards: monitor_files(SETTINGS),
    output:
        **{name: f"results/{{run}}/monitor/tables/{name}.csv" for name in MONITOR_TABLES},
    log:
        "results/{run}/logs/monitor_tables.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_tables"),
        code=source_digest("mragaudit.stages.monitor_tables"),
    message:
        "Evaluating the monitor"
    script:
        "../scripts/monitor_tables.py"


rule monitor_page:
    input:
        **rules.monitor_tables.output,
        traffic="results/{run}/monitor/traffic/check.jsonl",
        counts="results/{run}/monitor/replay/check.jsonl",
        files=lambda wildcards: monitor_files(SETTINGS),
    output:
        html=report(
            "results/{run}/monitor/report.html",
            caption="../report/monitor.rst",
            category="Report",
            labels={"report": "exfiltration monitor"},
        ),
    log:
        "results/{run}/logs/monitor_page.log",
    conda:
        "../../environment.yml"
    params:
        settings=used("monitor_page"),
        code=source_digest("mragaudit.stages.monitor_page"),
    message:
        "Writing the monitor's report"
    script:
        "../scripts/monitor_page.py"
