"""The README of a bundle: what lies where, how to check it, how to run each stage again."""

from __future__ import annotations

import msgspec

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
MODEL_STAGES: dict[str, tuple[str, ...]] = {step.stage: step.roles for step in STEPS if step.roles}


def needs_of(step: Step, settings: Settings) -> str:
    """Return which extra of mragaudit a stage needs, for its configured backends."""
    extras = sorted({extra for role in step.roles if (extra := _extra(role, settings))})
    return ", ".join(f"`mragaudit[{extra}]`" for extra in extras) or NO_MODEL


def _extra(role: str, settings: Settings) -> str:
    kind: Kind = "embedder" if role == "embedder" else "llm"
    return plugin(kind, getattr(settings.roles, role).backend).extra


def _named(writes: str) -> str:
    return ", ".join(f"`{name}`" for name in writes.split(", "))


def render_readme(settings: Settings, *, version: str) -> str:
    """Return the README as Markdown; the same run and version always give the same text."""
    rows = [f"| `{one.stage}` | {one.reads} | {_named(one.writes)} | {needs_of(one, settings)} |" for one in STEPS]
    return TEMPLATE.format(run=settings.run, version=version, rows="\n".join(rows))


TEMPLATE = """\
# Bundle of the run `{run}`

All results of one audit by mragaudit {version}, and all that they were made from. Its personal data is synthetic: a
corpus of real personal data cannot be bundled.

| here | what it is |
|---|---|
| `config.yaml` | the resolved config; `resources`, `corpus.source` and `queries.source` name places in this bundle |
| `resources/` | prompts, controls, languages, corpus templates, guard models, published figures |
| `inputs/` | the user's own corpus or queries, where there are any |
| `results/{run}/` | every stage's rows, tables, figures, report and manifest |
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
included. A row that was changed together with its checksum is found where a later stage disagrees with it. **What no
later stage repeats (a token count, a judge's raw reply), and a change after which everything later was made again too,
only the root digest shows.**

## Run a stage again

In a clone of mragaudit (a plain `pip install --editable .` has no model package), with this bundle unpacked into a
folder `review`:

```
mragaudit unpack bundle.tar.gz review
snakemake --profile workflow/profiles/review --directory review --forcerun STAGE --until STAGE
sha256sum --check --quiet review/checksums.sha256     # in review/: what came out otherwise
```

| STAGE | reads | writes below `results/{run}/` | needs |
|---|---|---|---|
{rows}

Results are the same bytes where the same code runs. Figures also depend on the version of matplotlib, the manifest on
those of all packages (`bundle.json` has them).

A stage whose model package is missing is refused before it starts, with the command that installs it. `retrieve` reads
`index/vectors.faiss` with FAISS, which is native code: if you do not trust the sender, delete
`results/{run}/index` first, and it is made again from the documents.
"""
