"""The folder of data that ships beside the library: prompts, controls, templates, languages."""

from __future__ import annotations

import hashlib
from pathlib import Path

from mragaudit.errors import ConfigError
from mragaudit.provenance import PACKAGE_ROOT, file_sha256, tree_sha256

REPOSITORY = PACKAGE_ROOT.parent.parent


def resource_folder(name: str) -> Path:
    """Return the folder that the config calls `resources`: below the working directory, else of the repository.

    Raises ConfigError when neither place has it.
    """
    for folder in (Path(name), REPOSITORY / name):
        if folder.is_dir():
            return folder
    raise ConfigError(
        f'config key "resources" is "{name}": no such folder here or in the repository; '
        "it holds prompts/, controls/, corpus/ and languages/"
    )


def corpus_digest(resources: str, source: str) -> str:
    """Return a digest of what the corpus is made from: the templates, or the imported file."""
    return _of(resource_folder(resources) / "corpus") if source == "synthetic" else _of(Path(source))


def queries_digest(resources: str, source: str | None, languages: tuple[str, ...]) -> str:
    """Return a digest of query templates, controls of the languages, and queries written by people."""
    folder = resource_folder(resources)
    paths = [folder / "corpus", folder / "controls" / "contexts.yaml"]
    paths += [folder / "controls" / f"{lang}.yaml" for lang in languages]
    return _join([_of(path) for path in [*paths, *([Path(source)] if source else [])]])


def prompts_digest(resources: str, role: str, languages: tuple[str, ...]) -> str:
    """Return a digest of one role's prompt files in the languages; a role may lack some."""
    folder = resource_folder(resources) / "prompts" / role
    return _join([_of(folder / f"{lang}.yaml") for lang in sorted(languages)])


def guard_digest(resources: str, guard: str | None) -> str:
    """Return a digest of the file of a guard model, empty for none."""
    return "" if guard is None else _of(resource_folder(resources) / "guards" / f"{guard}.yaml")


def languages_digest(resources: str, languages: tuple[str, ...]) -> str:
    """Return a digest of what describes the languages, their codes for translation models among it."""
    folder = resource_folder(resources) / "languages"
    return _join([_of(folder / f"{lang}.yaml") for lang in sorted(languages)])


def grid_digest(resources: str, pubmedqa: str | None) -> str:
    """Return a digest of what the hook audit's grid reads: corpora, lexicons, prompts of attacks, vocabularies."""
    folder = resource_folder(resources)
    paths = [folder / name for name in ("attacks", "defenses", "hook_audit")]
    return _join([_of(path) for path in [*paths, *([Path(pubmedqa)] if pubmedqa else [])]])


def _of(path: Path) -> str:
    """Return a digest of a file or folder, `absent` when there is none: the stage then says what is missing."""
    if path.is_dir():
        return tree_sha256(path)
    return file_sha256(path) if path.is_file() else "absent"


def _join(digests: list[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]
