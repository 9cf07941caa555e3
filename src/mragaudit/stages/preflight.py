"""What can be known to be wrong before the first job starts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from mragaudit.bundle.readme import MODEL_STAGES
from mragaudit.config import Settings
from mragaudit.corpus.controls import load_controls
from mragaudit.corpus.human_queries import import_queries
from mragaudit.corpus.importing import import_corpus
from mragaudit.corpus.languages import load_language
from mragaudit.errors import ConfigError, MissingPackageError, StorageError
from mragaudit.journal import known_answers
from mragaudit.judges.guards import CLASS, Guard
from mragaudit.paths import RunPaths
from mragaudit.prompts import load_generator, load_judge, load_template
from mragaudit.registry import Plugin, import_package, load, names, plugin
from mragaudit.resources import resource_folder
from mragaudit.stages.gates import require_enough_documents
from mragaudit.stages.grid_preflight import check_grid
from mragaudit.stages.judging import WITH_CONTEXT, guard_of
from mragaudit.stages.models import LANGUAGE_ROLES, TRANSLATING_ROLES, require_local, require_options
from mragaudit.stages.targets import asked_parts


def check_run(settings: Settings, *, results: Path, targets: Iterable[str] = ()) -> None:
    """Raise a clear error for a run that cannot succeed: bad or missing language or corpus files, space, permission.

    Only the parts of the workflow that the targets ask for are checked: the staged audit where none is named.
    """
    parts = asked_parts(targets)
    if "audit" in parts:
        _check_audit(settings)
    if "hook_audit" in parts:
        check_grid(settings)
    _require_writable(results / settings.run)


def _check_audit(settings: Settings) -> None:
    require_local(settings)
    _require_fitting_backends(settings)
    _require_fitting_guard(settings)
    require_options(settings)
    _require_files(settings)
    _require_languages(settings)
    _require_translation_codes(settings)
    _require_fitting_corpus(settings)


def require_models(settings: Settings, *, stages: Iterable[str], results: Path) -> None:
    """Raise MissingPackageError for a stage that is to run again and has neither its model's package nor a journal.

    It could only fail, and Snakemake deletes a stage's files before it runs: those of a bundle would be lost.
    """
    paths = RunPaths(results / settings.run)
    for stage in sorted(MODEL_STAGES.keys() & set(stages)):
        for role in MODEL_STAGES[stage]:
            try:
                _require_model(settings, role, stage=stage, paths=paths)
            except MissingPackageError as error:
                raise MissingPackageError(
                    f"stage {stage} runs the {role}: {error}; its files were left as they are"
                ) from error


def _require_model(settings: Settings, role: str, *, stage: str, paths: RunPaths) -> None:
    if role == "embedder":
        load("embedder", settings.roles.embedder.backend)
        if stage != "backtranslate":
            import_package("faiss", extra="embedded")
        return
    folder = paths.grid.journal if stage == "grid_calls" else paths.journal
    journals = folder.glob(f"{'judge' if stage == 'calibrate' else stage}.*.jsonl")
    if not known_answers(journals):
        load("llm", getattr(settings.roles, role).backend)


def _require_files(settings: Settings) -> None:
    for key, value in (
        ("corpus.source", settings.corpus.source),
        ("queries.source", settings.queries.source),
    ):
        if value not in (None, "synthetic") and not Path(str(value)).is_file():
            raise ConfigError(f'config key "{key}" is "{value}": no such file')


def _require_languages(settings: Settings) -> None:
    """Load all files of every language once, so that a missing or bad one shows before any model is loaded."""
    folder = resource_folder(settings.resources)
    for lang in settings.languages:
        _require_prompts(folder / "prompts", lang)
        load_language(folder / "languages", lang)
    if settings.judge.variants:
        per_class = settings.judge.controls_per_class
        load_controls(folder / "controls", languages=settings.languages, per_class=per_class)


def _require_fitting_backends(settings: Settings) -> None:
    for name in sorted(set(LANGUAGE_ROLES) - set(TRANSLATING_ROLES)):
        backend = getattr(settings.roles, name).backend
        if plugin("llm", backend).translates_only:
            raise ConfigError(
                f'config key "roles.{name}.backend" is "{backend}", which can only translate; '
                f"it fits {' and '.join(TRANSLATING_ROLES)}"
            )


def _require_fitting_guard(settings: Settings) -> None:
    """Raise ConfigError for a guard that its role's backend, the judge's mode or a variant does not fit."""
    _require_classifier_is_guard(settings)
    guard = guard_of(settings)
    if guard is None:
        return
    judge, role = settings.judge, settings.roles.judge
    able = [name for name in names("llm") if _runs(plugin("llm", name), guard)]
    if role.backend not in able:
        raise ConfigError(
            f'config key "judge.guard" is "{judge.guard}", and roles.judge.backend is "{role.backend}", which does not '
            f"run it; one of: {', '.join(able)}"
        )
    if guard.form != CLASS and role.rendering != "chat":
        raise ConfigError(
            f'config key "roles.judge.rendering" is "{role.rendering}"; {guard.name} is asked by its own chat '
            "template, so it needs rendering: chat"
        )
    if judge.mode not in guard.modes:
        raise ConfigError(
            f'config key "judge.mode" is "{judge.mode}"; {guard.name} answers by labels of its own, so it needs '
            f"mode: {' or '.join(guard.modes)}"
        )
    _require_guard_parts(guard, settings)


def _runs(backend: Plugin, guard: Guard) -> bool:
    return backend.classifies_only if guard.form == CLASS else not (backend.classifies_only or backend.translates_only)


def _require_classifier_is_guard(settings: Settings) -> None:
    for name in LANGUAGE_ROLES:
        backend = getattr(settings.roles, name).backend
        if plugin("llm", backend).classifies_only and (name != "judge" or settings.judge.guard is None):
            raise ConfigError(
                f'config key "roles.{name}.backend" is "{backend}", which only names the class of a text; it fits the '
                "judge, with judge.guard saying what its classes mean"
            )


def _require_guard_parts(guard: Guard, settings: Settings) -> None:
    judge = settings.judge
    with_context = [name for name in judge.variants if name in WITH_CONTEXT]
    if with_context and guard.context_turn is None:
        raise ConfigError(
            f'config key "judge.variants" holds "{with_context[0]}", and {guard.name} has no place for a document; '
            f"leave out {' and '.join(with_context)}"
        )
    if judge.guard_reading == "loose" and not guard.loose:
        raise ConfigError(
            f'config key "judge.guard_reading" is "loose"; {guard.name} has no label between safe and unsafe, so it '
            "needs strict"
        )


def _require_translation_codes(settings: Settings) -> None:
    backends = {getattr(settings.roles, name).backend for name in TRANSLATING_ROLES}
    by_code = sorted(name for name in backends if plugin("llm", name).translates_only)
    if not by_code:
        return
    folder = resource_folder(settings.resources) / "languages"
    for lang in settings.languages:
        if load_language(folder, lang).flores is None:
            raise ConfigError(
                f'{folder / f"{lang}.yaml"}: "flores" is missing; {by_code[0]} knows a language by its '
                'FLORES-200 code, for example "flores: swh_Latn"'
            )


def _require_prompts(folder: Path, lang: str) -> None:
    load_generator(folder, lang)
    load_judge(folder, lang)
    if lang != "en":
        load_template(folder, "translator", lang)
        load_template(folder, "back_translator", lang)


def _require_fitting_corpus(settings: Settings) -> None:
    """Read an imported corpus, and the queries that people wrote for it, as the stages will."""
    if settings.corpus.source == "synthetic":
        return
    documents = import_corpus(Path(settings.corpus.source))
    require_enough_documents(len(documents), k=settings.retrieve.k)
    if settings.queries.source is not None:
        import_queries(Path(settings.queries.source), documents, languages=settings.languages)


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StorageError(
            f"{folder}: results cannot be written here ({error.strerror}); grant write permission or free space"
        ) from error
