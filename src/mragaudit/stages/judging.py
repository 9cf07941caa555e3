"""What stages `calibrate` and `judge` share: which text and which context each variant shows the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.judges.margins import OPTIONS
from mragaudit.prompts import JudgeTemplates, Template, load_judge
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    OptionScores,
    Prompt,
    SelectRequest,
)
from mragaudit.resources import resource_folder
from mragaudit.stages.translate import one_line

WITH_CONTEXT: frozenset[str] = frozenset({"oracle", "retrieved"})


class JudgeItem(msgspec.Struct, frozen=True, kw_only=True):
    """One trial as one variant's judge sees it."""

    trial_id: str
    variant: str
    lang: str
    text: str
    """Query as shown; empty when it is missing."""
    context: str | None
    """Documents as shown; null for variants that see the query alone."""
    missing: str | None
    """Why this variant has nothing to judge; null where it has."""


def templates_for(languages: Sequence[str], settings: Settings) -> dict[str, JudgeTemplates]:
    """Return the judge's templates, English always among them."""
    folder = resource_folder(settings.resources) / "prompts"
    wanted = set(languages) if "multilingual" in settings.judge.variants else set()
    return {lang: load_judge(folder, lang) for lang in sorted(wanted | {"en"})}


def ask(
    items: Sequence[JudgeItem], templates: Mapping[str, JudgeTemplates], *, caller: Caller, settings: Settings
) -> list[OptionScores | Completion | Failure]:
    """Return the judge's replies in the order of the items, in the configured mode."""
    pairs = [(_template(item, templates), item) for item in items]
    prompts = [_prompt(template, item) for template, item in pairs]
    trials = [item.trial_id for item in items]
    if settings.judge.mode == "margin":
        choices = [ChooseRequest(prompt=prompt, options=OPTIONS) for prompt in prompts]
        return list(caller.choose(choices, trials=trials))
    if settings.judge.mode == "choice":
        selections = [SelectRequest(prompt=prompt, options=OPTIONS) for prompt in prompts]
        return list(caller.select(selections, trials=trials))
    requests = [
        GenerateRequest(prompt=prompt, max_tokens=settings.judge.max_tokens, stop=template.stop)
        for prompt, (template, _) in zip(prompts, pairs, strict=True)
    ]
    return list(caller.generate(requests, trials=trials))


def _template(item: JudgeItem, templates: Mapping[str, JudgeTemplates]) -> Template:
    chosen = templates[item.lang if item.variant == "multilingual" else "en"]
    return chosen.with_context if item.variant in WITH_CONTEXT else chosen.alone


def _prompt(template: Template, item: JudgeItem) -> Prompt:
    query = one_line(item.text)
    if item.context is None:
        return template.prompt(query=query)
    return template.prompt(query=query, context=item.context)
