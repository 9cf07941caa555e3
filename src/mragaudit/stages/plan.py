"""Before a run: how many calls and tokens each stage will need, what the journal holds, which gaps could be seen."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from mragaudit.config import Settings
from mragaudit.corpus.controls import load_controls
from mragaudit.corpus.importing import import_corpus
from mragaudit.journal import known_answers
from mragaudit.judges.margins import OPTIONS
from mragaudit.paths import RunPaths
from mragaudit.prompts import Template, load_generator, load_judge, load_template
from mragaudit.records.documents import UNSTRUCTURED
from mragaudit.records.repeats import REPEATED_STAGES, RepeatedStage
from mragaudit.resources import resource_folder
from mragaudit.stages.grid_outlook import render_grid_plan
from mragaudit.stages.judging import WITH_CONTEXT
from mragaudit.stages.repeats import repeats_calls
from mragaudit.stages.targets import asked_parts
from mragaudit.stats.power import detectable_gap

CHARS_PER_TOKEN = 4.0
"""English text under common tokenisers; good enough to tell minutes from hours."""
QUERY_CHARS = 110
STAGES = REPEATED_STAGES
WHOLE: frozenset[RepeatedStage] = frozenset({"judge", "generate"})
"""Stages that are asked about trials in all languages, English among them."""


class PlannedStage(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage will ask of its model."""

    stage: str
    calls: int
    """At most: equal prompts are asked once."""
    repeats: int
    """About: those of the calls that are made for the noise floor."""
    fresh_tokens: int
    """About: what follows the shared examples, over all calls."""
    shared_tokens: int
    """About: examples of all templates, computed once a shard where the backend reuses prefixes."""
    answer_tokens: int
    """At most."""
    in_journal: int
    """Finished calls of this stage that are kept from earlier runs, needed now or not."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything."""

    documents: int
    unstructured: int
    document_chars: int
    """Of a mean document."""
    queries: int
    """English queries to be asked in all languages."""
    other_languages: int
    english_controls: int
    controls: int
    """In each other language."""


def print_plan(settings: Settings, *, results: Path, targets: Iterable[str] = ()) -> None:
    """Write the plan to stderr, as the log's first lines."""
    sys.stderr.write(render_plan(settings, results=results, targets=targets))


def render_plan(settings: Settings, *, results: Path, targets: Iterable[str] = ()) -> str:
    """Return the plan of what the targets ask for as text: that of the staged audit where none is named."""
    parts = asked_parts(targets)
    audit = _render_audit(settings, results=results) if "audit" in parts else ""
    return audit + (render_grid_plan(settings, results=results) if "hook_audit" in parts else "")


def _render_audit(settings: Settings, *, results: Path) -> str:
    sizes = _sizes(settings)
    rows = plan_stages(settings, sizes, results=results)
    lines = [
        f"plan of run {settings.run}: {sizes.documents} documents, {len(settings.languages)} languages, "
        f"{sizes.queries * len(settings.languages)} trials and {_all_controls(sizes)} controls",
        f"  {'stage':<14}{'calls':>8}{'in journal':>12}{'fresh tokens':>14}{'answer tokens':>15}",
    ]
    lines += [
        f"  {row.stage:<14}{row.calls:>8}{row.in_journal:>12}{'~' + str(row.fresh_tokens):>14}"
        f"{'<' + str(row.answer_tokens):>15}"
        for row in rows
    ]
    if any(row.repeats for row in rows):
        named = ", ".join(f"{row.stage} {row.repeats}" for row in rows if row.repeats)
        total = sum(row.repeats for row in rows)
        lines.append(f"  of these calls about {total} are repeats, for the noise floor: {named}")
    return "\n".join([*lines, f"  {_gap_line(settings, sizes)}"]) + "\n"


def plan_stages(settings: Settings, sizes: Sizes, *, results: Path) -> list[PlannedStage]:
    """Return what each model stage will ask, in order."""
    folder = resource_folder(settings.resources) / "prompts"
    others = [lang for lang in settings.languages if lang != "en"]
    asked = sizes.queries * len(settings.languages)
    translated = sizes.queries * sizes.other_languages
    returned = translated + sizes.controls * sizes.other_languages
    context = sizes.document_chars * settings.retrieve.k
    counted: list[tuple[RepeatedStage, int, int, int]] = [
        ("translate", translated, QUERY_CHARS, settings.translate.max_tokens),
        ("backtranslate", returned, QUERY_CHARS, settings.backtranslate.max_tokens),
        ("judge", *_judge_size(settings, sizes)),
        ("generate", asked, QUERY_CHARS + context, settings.generate.max_tokens),
    ]
    repeats = {stage: _repeats(stage, settings, n_trials=asked if stage in WHOLE else translated) for stage in STAGES}
    shared = {
        "translate": [load_template(folder, "translator", lang) for lang in others],
        "backtranslate": [load_template(folder, "back_translator", lang) for lang in others],
        "judge": _judge_templates(folder, settings),
        "generate": [load_generator(folder, lang).template for lang in settings.languages],
    }
    journal = RunPaths(results / settings.run).journal
    return [
        PlannedStage(
            stage=stage,
            calls=calls + repeats[stage],
            repeats=repeats[stage],
            fresh_tokens=math.ceil((calls + repeats[stage]) * chars / CHARS_PER_TOKEN),
            shared_tokens=math.ceil(sum(_shared_chars(one) for one in shared[stage]) / CHARS_PER_TOKEN),
            answer_tokens=(calls + repeats[stage]) * answer,
            in_journal=known_answers(journal.glob(f"{stage}.*.jsonl")),
        )
        for stage, calls, chars, answer in counted
    ]


def _repeats(stage: RepeatedStage, settings: Settings, *, n_trials: int) -> int:
    """Return about how many calls a stage repeats, of so many trials that it asks about."""
    if not repeats_calls(stage, settings):
        return 0
    shapes = len(settings.queries.paraphrases)
    drawn = math.ceil(settings.noise.trials * (shapes + settings.queries.benign_per_document) / shapes)
    return min(n_trials, drawn) * (len(settings.judge.variants) if stage == "judge" else 1)


def _all_controls(sizes: Sizes) -> int:
    return sizes.english_controls + sizes.controls * sizes.other_languages


def _judge_size(settings: Settings, sizes: Sizes) -> tuple[int, int, int]:
    """Return calls, mean characters of a last turn, and longest answer of the judge."""
    variants = settings.judge.variants
    trials = sizes.queries * len(settings.languages) + _all_controls(sizes)
    contexts = {
        "oracle": sizes.document_chars,
        "retrieved": min(
            sizes.document_chars * settings.retrieve.k, int(settings.judge.context_tokens * CHARS_PER_TOKEN)
        ),
    }
    extra = sum(contexts[name] for name in variants if name in WITH_CONTEXT)
    mean = QUERY_CHARS + (extra // len(variants) if variants else 0)
    longest = {"margin": 0, "parse": settings.judge.max_tokens, "choice": max(map(len, OPTIONS))}
    return trials * len(variants), mean, longest[settings.judge.mode]


def _judge_templates(folder: Path, settings: Settings) -> list[Template]:
    """Return the templates whose examples are shared; a guard's own prompt is its chat template's and not ours."""
    if settings.judge.guard is not None:
        return []
    languages = settings.languages if "multilingual" in settings.judge.variants else ("en",)
    found = [load_judge(folder, lang) for lang in languages]
    return [template for one in found for template in (one.alone, one.with_context)]


def _shared_chars(template: Template) -> int:
    return len(template.system) + len(template.few_shot_text())


def _sizes(settings: Settings) -> Sizes:
    asked = len(settings.queries.paraphrases) + settings.queries.benign_per_document
    judge = settings.judge
    documents, unstructured, chars = _corpus_size(settings)
    return Sizes(
        documents=documents,
        unstructured=unstructured,
        document_chars=chars,
        queries=documents * asked,
        other_languages=len(settings.languages) - 1,
        english_controls=_n_controls(settings, judge.english_controls_per_class),
        controls=_n_controls(settings, judge.controls_per_class),
    )


def _n_controls(settings: Settings, per_class: int | None) -> int:
    if not settings.judge.variants:
        return 0
    folder = resource_folder(settings.resources) / "controls"
    return len(load_controls(folder, languages=("en",), per_class=per_class))


def _corpus_size(settings: Settings) -> tuple[int, int, int]:
    """Return documents, documents with an unstructured item, and characters of a mean document."""
    corpus = settings.corpus
    if corpus.source == "synthetic":
        chars_a_word = 6
        return (
            corpus.n_documents,
            corpus.n_documents * 2 // 5,
            (corpus.min_words + corpus.max_words) // 2 * chars_a_word,
        )
    rows = import_corpus(Path(corpus.source))
    unstructured = sum(row.pii_type in UNSTRUCTURED for row in rows)
    return len(rows), unstructured, sum(len(row.text) for row in rows) // len(rows)


def _gap_line(settings: Settings, sizes: Sizes) -> str:
    tests = max(1, sizes.other_languages)
    alpha = 1 - settings.statistics.confidence
    gap = detectable_gap(sizes.unstructured, alpha=alpha, tests=tests)
    if gap.least_gap is None:
        return (
            f"{sizes.unstructured} documents with a name or address are too few for any gap between languages to be "
            f"significant (exact McNemar, Holm over {tests})"
        )
    return (
        f"with {sizes.unstructured} documents with a name or address, no gap between English and another language "
        f"below {gap.least_gap:.0%} can be significant (exact McNemar, Holm over {tests})"
    )
