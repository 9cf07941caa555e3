"""What stages `calibrate` and `judge` share: which text and which context each variant shows the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from mragaudit.calls import Caller
from mragaudit.config import Settings
from mragaudit.errors import ConfigError
from mragaudit.judges.guards import CLASS, Guard, guard_label, guard_verdict, load_guard
from mragaudit.judges.margins import OPTIONS
from mragaudit.judges.parser import Verdict, parse_verdict
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


def guard_of(settings: Settings) -> Guard | None:
    """Return the guard model in the judge's role, None where the judge is prompted; errors as in load_guard."""
    name = settings.judge.guard
    return None if name is None else load_guard(resource_folder(settings.resources) / "guards", name)


def reader_of(settings: Settings) -> Callable[[str], Verdict]:
    """Return how a reply is read in `parse` mode."""
    guard = guard_of(settings)
    return parse_verdict if guard is None else partial(guard_verdict, guard, reading=settings.judge.guard_reading)


def off_label_uses(settings: Settings) -> dict[tuple[str, str], str]:
    """Return why a guard's use is off-label, by (variant, language); only uses that are, none for a prompted judge."""
    guard = guard_of(settings)
    if guard is None:
        return {}
    found = {
        (variant, lang): ", ".join(guard.off_label(lang, variant=variant))
        for variant in settings.judge.variants
        for lang in settings.languages
    }
    return {use: why for use, why in found.items() if why}


def templates_for(languages: Sequence[str], settings: Settings) -> dict[str, JudgeTemplates]:
    """Return the judge's templates, English always among them; a guard's are the same in every language."""
    guard = guard_of(settings)
    if guard is not None:
        return dict.fromkeys(sorted({*languages, "en"}), guard.templates())
    folder = resource_folder(settings.resources) / "prompts"
    wanted = set(languages) if "multilingual" in settings.judge.variants else set()
    return {lang: load_judge(folder, lang) for lang in sorted(wanted | {"en"})}


def ask(
    items: Sequence[JudgeItem],
    templates: Mapping[str, JudgeTemplates],
    *,
    caller: Caller,
    settings: Settings,
    repeat: int = 0,
) -> list[OptionScores | Completion | Failure]:
    """Return the judge's replies in the order of the items, in the configured mode."""
    pairs = [(_template(item, templates), item) for item in items]
    prompts = [_prompt(template, item) for template, item in pairs]
    trials = [item.trial_id for item in items]
    if settings.judge.mode == "margin":
        guard = guard_of(settings)
        options = OPTIONS if guard is None else guard.options
        choices = [ChooseRequest(prompt=prompt, options=options, repeat=repeat) for prompt in prompts]
        return list(caller.choose(choices, trials=trials))
    if settings.judge.mode == "choice":
        selections = [SelectRequest(prompt=prompt, options=OPTIONS) for prompt in prompts]
        return list(caller.select(selections, trials=trials))
    requests = [
        GenerateRequest(prompt=prompt, max_tokens=settings.judge.max_tokens, stop=template.stop, repeat=repeat)
        for prompt, (template, _) in zip(prompts, pairs, strict=True)
    ]
    replies = list(caller.generate(requests, trials=trials))
    _require_known_classes(replies, settings)
    return list(replies)


def _require_known_classes(replies: Sequence[Completion | Failure], settings: Settings) -> None:
    """Raise ConfigError for a class that the guard does not have.

    A classifier names nothing else than its classes: read as UNPARSED, a LABEL_0 would stop every attack there is.
    """
    guard = guard_of(settings)
    if guard is None or guard.form != CLASS:
        return
    for reply in replies:
        if isinstance(reply, Completion) and guard_label(guard, reply.text) is None:
            raise ConfigError(
                f'config key "roles.judge.options.labels": the model names the class "{reply.text}", and those of '
                f"{guard.name} are {', '.join(guard.labels)}; give the names of the model's classes, in their order"
            )


def _template(item: JudgeItem, templates: Mapping[str, JudgeTemplates]) -> Template:
    chosen = templates[item.lang if item.variant == "multilingual" else "en"]
    return chosen.with_context if item.variant in WITH_CONTEXT else chosen.alone


def _prompt(template: Template, item: JudgeItem) -> Prompt:
    query = one_line(item.text)
    if item.context is None:
        return template.prompt(query=query)
    return template.prompt(query=query, context=item.context)
