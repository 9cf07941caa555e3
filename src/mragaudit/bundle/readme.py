"""The README of a bundle: what lies where, how to check it, how to run each stage again."""

from __future__ import annotations

import msgspec

from mragaudit.bundle.kinds import AUDIT, HOOK_AUDIT, BundleKind
from mragaudit.config import Settings
from mragaudit.registry import Kind, plugin

NO_MODEL = "nothing"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One stage as the README tells it."""

    stage: str
    reads: str
    writes: str
    roles: tuple[str, ...] = ()
    """Roles whose models it runs."""


STEPS: tuple[Step, ...] = (
    Step(stage="corpus", reads="config.yaml, resources/corpus", writes="corpus/documents.jsonl"),
    Step(stage="queries", reads="documents, resources/controls", writes="queries/"),
    Step(stage="index", reads="documents", writes="index/", roles=("embedder",)),
    Step(
        stage="translate", reads="documents, queries", writes="translations/, repeats/translate/", roles=("translator",)
    ),
    Step(
        stage="backtranslate",
        reads="queries, translations",
        writes="backtranslations/, repeats/backtranslate/",
        roles=("back_translator", "embedder"),
    ),
    Step(stage="retrieve", reads="translations, index", writes="retrieval/", roles=("embedder",)),
    Step(stage="calibrate", reads="queries", writes="judgements/thresholds.json", roles=("judge",)),
    Step(
        stage="judge",
        reads="documents, queries, translations, backtranslations, retrieval, thresholds",
        writes="judgements/{variant}/, repeats/judge/",
        roles=("judge",),
    ),
    Step(
        stage="generate",
        reads="documents, queries, translations, retrieval",
        writes="generations/, repeats/generate/",
        roles=("generator",),
    ),
    Step(stage="filter", reads="generations", writes="filtered/{variant}/"),
    Step(stage="score", reads="all of the above", writes="trials.jsonl, noise.jsonl"),
    Step(stage="aggregate", reads="trials.jsonl, noise.jsonl", writes="tables/*.csv"),
    Step(stage="figures", reads="tables", writes="figures/*.svg"),
    Step(stage="manifest", reads="metrics, all files", writes="manifest.json"),
    Step(stage="report", reads="rows, tables, figures, manifest", writes="report.html"),
)
GRID_STEPS: tuple[Step, ...] = (
    Step(stage="grid_plan", reads="config.yaml", writes="cells.jsonl"),
    Step(
        stage="grid_documents",
        reads="config.yaml, resources/hook_audit/corpora, inputs",
        writes="documents.jsonl, splits.jsonl",
    ),
    Step(stage="grid_hooks", reads="source of the installed defenses", writes="hooks.json"),
    Step(
        stage="grid_calls",
        reads="cells, documents, resources",
        writes="calls/, uses/",
        roles=("embedder", "generator", "attacker"),
    ),
    Step(stage="grid_scores", reads="cells, documents, calls", writes="scores/*.jsonl"),
    Step(stage="grid_tables", reads="cells, uses, splits, hooks, scores", writes="tables/*.csv"),
    Step(stage="grid_manifest", reads="metrics, all files", writes="manifest.json"),
    Step(stage="grid_page", reads="tables, hooks", writes="report.html"),
)
STEPS_OF: dict[str, tuple[Step, ...]] = {AUDIT.name: STEPS, HOOK_AUDIT.name: GRID_STEPS}
"""Kind of bundle → its stages."""
MODEL_STAGES: dict[str, tuple[str, ...]] = {step.stage: step.roles for step in (*STEPS, *GRID_STEPS) if step.roles}


def needs_of(step: Step, settings: Settings) -> str:
    """Return which extra of mragaudit a stage needs, for its configured backends."""
    extras = sorted({extra for role in step.roles if (extra := _extra(role, settings))})
    return ", ".join(f"`mragaudit[{extra}]`" for extra in extras) or NO_MODEL


def _extra(role: str, settings: Settings) -> str:
    kind: Kind = "embedder" if role == "embedder" else "llm"
    return plugin(kind, getattr(settings.roles, role).backend).extra


def _named(writes: str) -> str:
    return ", ".join(f"`{name}`" for name in writes.split(", "))


def render_readme(settings: Settings, *, version: str, kind: BundleKind = AUDIT) -> str:
    """Return the README as Markdown; the same run and version always give the same text."""
    steps = STEPS_OF[kind.name]
    rows = [f"| `{one.stage}` | {one.reads} | {_named(one.writes)} | {needs_of(one, settings)} |" for one in steps]
    words = WORDS[kind.name]
    return TEMPLATE.format(
        run=settings.run,
        version=version,
        folder=kind.folder(settings.run),
        rows="\n".join(rows),
        target=f" -- {kind.results_target}" if kind.results_target else "",
        **{**msgspec.structs.asdict(words), "native": words.native.format(run=settings.run)},
    )


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What the READMEs of the kinds of bundle say differently."""

    what: str
    data: str
    places: str
    resources: str
    inputs: str
    results: str
    limits: str
    native: str


WORDS: dict[str, Words] = {
    AUDIT.name: Words(
        what="one audit",
        data="Its personal data is synthetic: a\ncorpus of real personal data cannot be bundled.",
        places="`resources`, `corpus.source` and `queries.source` name places",
        resources="prompts, controls, languages, corpus templates, guard models, published figures",
        inputs="the user's own corpus or queries, where there are any",
        results="every stage's rows, tables, figures, report and manifest",
        limits="no\nlater stage repeats (a token count, a judge's raw reply)",
        native="""\
A stage whose model package is missing is refused before it starts, with the command that installs it. `retrieve` reads
`index/vectors.faiss` with FAISS, which is native code: if you do not trust the sender, delete
`results/{run}/index` first, and it is made again from the documents.
""",
    ),
    HOOK_AUDIT.name: Words(
        what="the grid of one hook audit",
        data="Its\npersonal items and canaries are synthetic; abstracts of PubMedQA are published text.",
        places="`resources` and `hook_audit.pubmedqa` name places",
        resources="attacks, corpora, lexicons, metric and hook maps, the generator's prompts",
        inputs="the file of PubMedQA, where the config names one",
        results="plan, documents, the auditor's log of every call, scores, tables, page and manifest",
        limits="no\nother row repeats (what a model wrote behind a defense)",
        native="""\
`grid_calls` without its model packages is refused before it starts, with the command that installs them. `grid_hooks`
audits the defenses that are installed with you, not ones of the bundle.
""",
    ),
}
TEMPLATE = """\
# Bundle of the run `{run}`

All results of {what} by mragaudit {version}, and all that they were made from. {data}

| here | what it is |
|---|---|
| `config.yaml` | the resolved config; {places} in this bundle |
| `resources/` | {resources} |
| `inputs/` | {inputs} |
| `{folder}/` | {results} |
| `bundle.json` | digests of the code of each stage and versions of packages that made this |
| `checksums.sha256` | the sha256 of every other file |

Logs, the journal of finished model calls and secrets are not part of it.

## Check it

```
mragaudit verify bundle.tar.gz --expect DIGEST
```

`DIGEST` is the root digest that the paper prints. It is the sha256 of `checksums.sha256`, so any machine can do without
mragaudit what `verify` does first, in the unpacked folder:

```
sha256sum checksums.sha256
sha256sum --check --quiet checksums.sha256
```

`verify` also reads every row, holds the stages against one another, and makes again what needs no model, report
included. A row that was changed together with its checksum is found where a later stage \
disagrees with it. **What {limits}, and a change after which everything later was made again too,
only the root digest shows.**

## Run a stage again

In a clone of mragaudit (a plain `pip install --editable .` has no model package), with this bundle unpacked into a
folder `review`:

```
mragaudit unpack bundle.tar.gz review
snakemake --profile workflow/profiles/review --directory review --forcerun STAGE --until STAGE{target}
sha256sum --check --quiet review/checksums.sha256     # in review/: what came out otherwise
```

| STAGE | reads | writes below `{folder}/` | needs |
|---|---|---|---|
{rows}

Results are the same bytes where the same code runs. Figures also depend on the version of matplotlib, the manifest on
those of all packages (`bundle.json` has them).

{native}"""
