"""What the report says of a guard model in the judge's role, so that nobody quotes its rates without its scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from mragaudit.config import Settings
from mragaudit.judges.guards import LANGUAGE, PURPOSE, Guard, guard_label
from mragaudit.records.results import Judgement
from mragaudit.records.trials import Trial
from mragaudit.report.model import Flag, GuardUse, Language
from mragaudit.stages.judging import guard_of, off_label_uses

ALL = "all languages"


def guard_use(settings: Settings, languages: Iterable[Language]) -> GuardUse | None:
    """Return the guard as the page shows it; None where the judge is prompted."""
    guard = guard_of(settings)
    if guard is None:
        return None
    places = _places(off_label_uses(settings), {one.code: one.name for one in languages})
    mapping = guard.mapping(settings.judge.guard_reading)
    return GuardUse(
        name=guard.name,
        licence=guard.licence,
        source=guard.source,
        purpose=guard.purpose,
        labels=tuple((label, str(verdict)) for label, verdict in mapping.items()),
        languages_source=guard.languages_source,
        off_label=tuple(places.items()),
    )


def _places(uses: Mapping[tuple[str, str], str], names: Mapping[str, str]) -> dict[str, str]:
    """Return reason → languages in words, with the variants that are meant where languages differ by variant."""
    found: dict[str, str] = {}
    for reason in (LANGUAGE, PURPOSE):
        by_variant: dict[str, list[str]] = {variant: [] for variant, _ in uses}
        for (variant, lang), why in uses.items():
            if reason in why.split(", "):
                by_variant[variant].append(names[lang])
        if words := _grouped({variant: tuple(langs) for variant, langs in by_variant.items() if langs}, names):
            found[reason] = words
    return found


def _grouped(by_variant: Mapping[str, tuple[str, ...]], names: Mapping[str, str]) -> str:
    groups: dict[tuple[str, ...], list[str]] = {}
    for variant, langs in by_variant.items():
        groups.setdefault(langs, []).append(variant)
    shown = ((ALL if len(langs) == len(names) else ", ".join(langs), ", ".join(who)) for langs, who in groups.items())
    return "; ".join(f"{langs} (judge {who})" for langs, who in shown)


def guard_flags(settings: Settings, use: GuardUse | None) -> Iterator[Flag]:
    """Yield what a reader must know of a guard: off-label use, and a model that its file does not name."""
    guard = guard_of(settings)
    if guard is None or use is None:
        return
    for reason, where in use.off_label:
        yield Flag(severity="warning", title=f"Guard off-label ({reason}): {where}", text=_why(reason, use))
    model = settings.roles.judge.model
    if _bare(model) not in {_bare(name) for name in guard.models}:
        yield Flag(
            severity="warning",
            title=f"The judge's model is {model}",
            text=f"The file of {guard.name} names {', '.join(guard.models)}; its labels and languages are theirs.",
        )


def _why(reason: str, use: GuardUse) -> str:
    if reason == LANGUAGE:
        return (
            f"The makers of {use.name} do not claim these languages: {use.languages_source}. A rate here says how the "
            "guard does where nobody promised that it works."
        )
    return f"{use.name} is not made for this: {use.purpose}. A low BLOCK rate is what its makers say to expect."


def _bare(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1].casefold()


def between_flags(
    settings: Settings, trials: Iterable[Trial], judgements: Mapping[str, Mapping[str, Judgement]]
) -> Iterator[Flag]:
    """Yield how many attack trials got a label that the other reading takes the other way, by variant and language."""
    guard = guard_of(settings)
    if guard is None or not guard.loose or settings.judge.mode != "parse":
        return
    attacks = [trial for trial in trials if trial.intent == "attack"]
    counts = [
        f"{variant}, {lang}: {words}"
        for variant, judged in judgements.items()
        for lang in settings.languages
        if (words := _between(guard, [judged[one.trial_id] for one in attacks if one.lang == lang]))
    ]
    strict = settings.judge.guard_reading == "strict"
    taken, other = ("BLOCK", "loose") if strict else ("ALLOW", "strict")
    yield Flag(
        severity="info",
        title=f"{guard.name}: {', '.join(guard.loose)} is read as {taken}",
        text=f"Attack trials that got it: {'; '.join(counts) or 'none'}. judge.guard_reading: {other} takes them the "
        "other way, without a new call.",
    )


def _between(guard: Guard, rows: list[Judgement]) -> str:
    """Return the count in words, empty for none."""
    known = [row for row in rows if row.not_evaluated is None]
    found = Counter(guard_label(guard, row.raw) for row in known)
    n = sum(found[label] for label in guard.loose)
    return f"{n} of {len(known)} evaluated, {len(rows) - len(known)} not evaluated" if n else ""
