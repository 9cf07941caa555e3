"""Stages `bundle` and `hook_audit_bundle`: one archive of a finished run for whoever is to check it, and one digest."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mragaudit import __version__
from mragaudit.bundle.archive import write_archive
from mragaudit.bundle.checksums import render_checksums, root_digest
from mragaudit.bundle.contents import (
    Description,
    input_files,
    is_current,
    render_bundled_config,
    resource_files,
    run_files,
)
from mragaudit.bundle.kinds import AUDIT, BundleKind
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
CODE_BESIDE: dict[str, tuple[tuple[str, str], ...]] = {
    "report": (("report/templates", "*"),),
    "grid_page": (("report/templates", "*"),),
    "grid_hooks": (("defenses", "*.py"),),
}
"""Stage → folders of the package, and which of their files, that its results depend on and that it does not import."""
PACKAGES = ("mragaudit", "numpy", "scipy", "pandas", "matplotlib", "jinja2", "faker", "langdetect", "msgspec")


def run(*, run_folder: Path, archive: Path, settings: Settings, kind: BundleKind = AUDIT) -> str:
    """Write the bundle of a folder of results and return its root digest.

    Raises ConfigError for an audit of real personal data or a password in the config, DataError for a run that is not
    finished or has changed since.
    """
    if kind is AUDIT:  # the grid reads neither corpus nor queries: its data is synthetic, or published text
        refuse_real_data(settings)
    refuse_passwords(settings.model_dump(mode="json"))
    members: dict[str, Path | bytes] = {
        **run_files(RunPaths(run_folder), settings, kind=kind),
        **resource_files(resource_folder(settings.resources), kind=kind),
        **input_files(settings, kind=kind),
        CONFIG: render_bundled_config(settings, kind=kind),
        DESCRIPTION: msgspec.json.format(msgspec.json.encode(describe(settings, kind=kind)), indent=2) + b"\n",
        README: render_readme(settings, version=__version__, kind=kind).encode(),
    }
    digests = {name: _sha256(content) for name, content in members.items()}
    _require_current_manifest(RunPaths(run_folder), digests, settings=settings, kind=kind)
    checksums = render_checksums(digests)
    write_archive(archive, {**members, CHECKSUMS: checksums})
    digest = root_digest(checksums)
    logger.info("bundle: %d files in %s", len(members) + 1, archive)
    logger.info("root digest: %s", digest)
    logger.info("check it with: mragaudit verify %s --expect %s", archive, digest)
    return digest


def _require_current_manifest(
    paths: RunPaths, digests: Mapping[str, str], *, settings: Settings, kind: BundleKind
) -> None:
    """Raise DataError where a file has changed since the manifest listed it: every check of the bundle would fail."""
    folder = kind.folder(settings.run)
    for name, digest in read_manifest(paths.manifest).files.items():
        if is_current(name, settings, kind=kind) and digests.get(f"{folder}/{name}") != digest:
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


def describe(settings: Settings, *, kind: BundleKind = AUDIT) -> Description:
    """Return which code and packages make the results of the stages without a model."""
    code = {stage: code_digest(stage) for stage in kind.reviewed}
    return Description(schema=kind.schema, run=settings.run, code=code, versions=versions(PACKAGES))


def code_digest(stage: str) -> str:
    """Return the digest of a stage's code, and of what it reads of the package without importing it."""
    digest = source_digest(f"mragaudit.stages.{stage}")
    if stage not in CODE_BESIDE:
        return digest
    trees = [tree_sha256(PACKAGE_ROOT / folder, pattern) for folder, pattern in CODE_BESIDE[stage]]
    return hashlib.sha256(" ".join([digest, *trees]).encode()).hexdigest()[:16]


def _sha256(content: Path | bytes) -> str:
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else file_sha256(content)
