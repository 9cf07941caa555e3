"""Stage `bundle`: one archive of a finished run for whoever is to check it, and one digest of all that is in it."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mragaudit import __version__
from mragaudit.bundle import contents
from mragaudit.bundle.archive import write_archive
from mragaudit.bundle.checksums import render_checksums, root_digest
from mragaudit.bundle.contents import (
    SCHEMA,
    Description,
    input_files,
    is_current,
    render_bundled_config,
    resource_files,
    run_files,
)
from mragaudit.bundle.names import CHECKSUMS, CONFIG, DESCRIPTION, README
from mragaudit.bundle.readme import render_readme
from mragaudit.config import Settings
from mragaudit.errors import ConfigError, DataError
from mragaudit.paths import RunPaths
from mragaudit.provenance import PACKAGE_ROOT, file_sha256, source_digest, tree_sha256, versions
from mragaudit.resources import resource_folder
from mragaudit.stages.manifest import read_manifest

logger = logging.getLogger(__name__)

_PASSWORD = re.compile(r"[\w+.-]+://[^/@]*:[^/@]+@")
REVIEWED = ("corpus", "queries", "filter", "score", "aggregate", "figures", "report")
"""Stages without a model, which `mragaudit verify` runs again."""
PACKAGES = ("mragaudit", "numpy", "scipy", "pandas", "matplotlib", "jinja2", "faker", "langdetect", "msgspec")


def run(*, run_folder: Path, archive: Path, settings: Settings) -> str:
    """Write the bundle and return its root digest.

    Raises ConfigError for a corpus of real personal data or a password in the config, DataError for a run that is not
    finished or has changed since.
    """
    refuse_real_data(settings)
    refuse_passwords(settings.model_dump(mode="json"))
    members: dict[str, Path | bytes] = {
        **run_files(RunPaths(run_folder), settings),
        **resource_files(resource_folder(settings.resources)),
        **input_files(settings),
        CONFIG: render_bundled_config(settings),
        DESCRIPTION: msgspec.json.format(msgspec.json.encode(describe(settings)), indent=2) + b"\n",
        README: render_readme(settings, version=__version__).encode(),
    }
    digests = {name: _sha256(content) for name, content in members.items()}
    _require_current_manifest(RunPaths(run_folder), digests, settings=settings)
    checksums = render_checksums(digests)
    write_archive(archive, {**members, CHECKSUMS: checksums})
    digest = root_digest(checksums)
    logger.info("bundle: %d files in %s", len(members) + 1, archive)
    logger.info("root digest: %s", digest)
    logger.info("check it with: mragaudit verify %s --expect %s", archive, digest)
    return digest


def _require_current_manifest(paths: RunPaths, digests: Mapping[str, str], *, settings: Settings) -> None:
    """Raise DataError where a file has changed since the manifest listed it: every check of the bundle would fail."""
    for name, digest in read_manifest(paths.manifest).files.items():
        if is_current(name, settings) and digests.get(f"{contents.run_folder(settings)}/{name}") != digest:
            path = paths.root / name
            raise DataError(
                f"{path}: changed or deleted since the manifest was written; run the stage `manifest` again"
            )


def refuse_real_data(settings: Settings) -> None:
    """Raise ConfigError where planted values count as real people's: a bundle is made to be passed on."""
    if settings.real_data:
        raise ConfigError(
            f'config key "corpus.personal_data" is "{settings.corpus.personal_data}" and the corpus '
            f'"{settings.corpus.source}": this counts as real personal data, which is never bundled; share '
            "results/*/tables and figures, which hold counts alone, or set corpus.personal_data: synthetic if nobody's "
            "data is in it"
        )


def refuse_passwords(config: Mapping[str, Any], *, section: str = "") -> None:
    """Raise ConfigError where a URL of the config holds a password: the manifest would publish it."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            refuse_passwords(value, section=f"{section}{key}.")
        elif isinstance(value, str) and _PASSWORD.match(value):
            raise ConfigError(
                f'config key "{section}{key}" is a URL with a password, which a bundle would publish; take it out '
                "and run the stage `manifest` again"
            )


def describe(settings: Settings) -> Description:
    """Return which code and packages make the results of the stages without a model."""
    code = {stage: code_digest(stage) for stage in REVIEWED}
    return Description(schema=SCHEMA, run=settings.run, code=code, versions=versions(PACKAGES))


def code_digest(stage: str) -> str:
    """Return the digest of a stage's code; the report's templates are part of it."""
    digest = source_digest(f"mragaudit.stages.{stage}")
    if stage != "report":
        return digest
    templates = tree_sha256(PACKAGE_ROOT / "report" / "templates")
    return hashlib.sha256(f"{digest} {templates}".encode()).hexdigest()[:16]


def _sha256(content: Path | bytes) -> str:
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else file_sha256(content)
