"""What can be known to be wrong before the first job starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mragaudit.config import Settings
from mragaudit.errors import ConfigError, StorageError
from mragaudit.prompts import load_generator, load_judge, load_template
from mragaudit.resources import resource_folder
from mragaudit.stages.models import require_local


def check_run(settings: Settings, *, results: Path) -> None:
    """Raise a clear error for a run that cannot succeed: missing prompts, files, space, or permission."""
    require_local(settings)
    _require_files(settings)
    _require_prompts(settings)
    _require_writable(results / settings.run)


def _require_files(settings: Settings) -> None:
    for key, value in (
        ("corpus.source", settings.corpus.source),
        ("queries.source", settings.queries.source),
    ):
        if value not in (None, "synthetic") and not Path(str(value)).is_file():
            raise ConfigError(f'config key "{key}" is "{value}": no such file')


def _require_prompts(settings: Settings) -> None:
    """Load every prompt once, so that a missing language or a bad file shows before any model is loaded."""
    folder = resource_folder(settings.resources) / "prompts"
    for lang in settings.languages:
        load_generator(folder, lang)
        load_judge(folder, lang)
        if lang != "en":
            load_template(folder, "translator", lang)
            load_template(folder, "back_translator", lang)


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StorageError(
            f"{folder}: results cannot be written here ({error.strerror}); grant write permission or free space"
        ) from error
