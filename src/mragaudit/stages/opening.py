"""A bundle from somebody else, unpacked and read so far as it says what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mragaudit.bundle.archive import LIMITS, Limits, unpack_archive
from mragaudit.bundle.checksums import differences, parse_checksums
from mragaudit.bundle.contents import Description, bundled_config, own_part
from mragaudit.bundle.kinds import AUDIT, BundleKind, kind_of
from mragaudit.bundle.names import CHECKSUMS, CONFIG, DESCRIPTION, README, RESOURCES
from mragaudit.bundle.times import is_unpacked
from mragaudit.config import Settings, load_settings
from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.errors import ArchiveError, DataError, MragauditError
from mragaudit.paths import RunPaths
from mragaudit.plainyaml import read_plain

MOST_CONFIG_BYTES = 1 << 20
MOST_RESAMPLES = 1_000_000
MOST_WORDS = 20_000
MOST_NODES = 200_000
MOST_CELLS = 200_000
MOST_DOCUMENTS = 200_000


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """An archive unpacked into a folder that is thrown away."""

    folder: Path
    digests: dict[str, str]
    """sha256 by name, taken while unpacking."""
    config: dict[str, Any]
    """As it stands in the bundle."""
    settings: Settings
    description: Description

    @property
    def kind(self) -> BundleKind:
        """Of which kind the bundle is."""
        return kind_of(self.description.schema)

    @property
    def root(self) -> str:
        """Folder of the results, as names in the bundle begin."""
        return self.kind.folder(self.settings.run)

    @property
    def paths(self) -> RunPaths:
        """Where the results are."""
        return RunPaths(self.folder / self.root)

    def results(self) -> list[str]:
        """Return the names of the run's files below its folder."""
        prefix = f"{self.root}/"
        return [name.removeprefix(prefix) for name in self.digests if name.startswith(prefix)]


def open_bundle(path: Path, folder: Path, *, limits: Limits = LIMITS) -> Opened:
    """Unpack an archive into an empty folder and read what it says of itself; raises ArchiveError."""
    digests = unpack_archive(path, folder, limits=limits)
    for name in (CHECKSUMS, CONFIG, DESCRIPTION, README):
        if name not in digests:
            raise ArchiveError(f"{path}: it holds no {name}, so it is no bundle; make one with: snakemake bundle")
    try:
        description = _read_description(folder / DESCRIPTION)
        kind = kind_of(description.schema)
        for name in digests:
            if name.endswith(".yaml"):
                _require_plain_yaml(folder / name, name)
        config = read_plain(folder / CONFIG)
        settings = load_settings(config if isinstance(config, dict) else {})
        _require_own_places(config, settings, kind=kind)
        _require_possible(settings, kind=kind, n_files=len(digests))
    except (MragauditError, msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(f"{path}: {str(error).replace(f'{folder}/', '')}") from error
    return Opened(folder=folder, digests=digests, config=config, settings=settings, description=description)


def unpacked_kind(folder: Path) -> BundleKind | None:
    """Return which kind of bundle was unpacked into a folder, None where none was; raises DataError for a bad one."""
    return kind_of(_read_description(folder / DESCRIPTION).schema) if is_unpacked(folder) else None


def _read_description(path: Path) -> Description:
    try:
        description = msgspec.json.decode(path.read_bytes(), type=Description)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{DESCRIPTION}: {error}") from error
    try:
        kind_of(description.schema)
    except DataError as error:
        raise DataError(f"{DESCRIPTION}: {error}") from error
    return description


def _require_plain_yaml(path: Path, name: str) -> None:
    """Raise DataError for a file that is large, has tags, or stands for far more by its aliases than is written.

    Only resources may have aliases: some of ours share lists of sentences.
    """
    if path.stat().st_size > MOST_CONFIG_BYTES:
        raise DataError(f"{name}: larger than {MOST_CONFIG_BYTES} bytes, which no file of ours is")
    text = path.read_text(encoding="utf-8")
    refused = (
        (yaml.TagToken,) if name.startswith(f"{RESOURCES}/") else (yaml.TagToken, yaml.AliasToken, yaml.AnchorToken)
    )
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, refused):
            line = token.start_mark.line + 1
            raise DataError(f"{name}, line {line}: aliases, anchors and tags are not read from a bundle")
    if _n_nodes(yaml.compose(text, Loader=yaml.SafeLoader), {}) > MOST_NODES:
        raise DataError(f"{name}: its aliases stand for more than {MOST_NODES} values, which no file of ours does")


def _n_nodes(node: yaml.Node | None, known: dict[int, int]) -> int:
    """Return how many values a document holds with its aliases written out; more than any limit for a circle."""
    if node is None:
        return 0
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1  # what it holds until it is counted: only a circle asks for it before that
        pairs = node.value if isinstance(node, yaml.CollectionNode) else []
        parts = [part for pair in pairs for part in (pair if isinstance(pair, tuple) else [pair])]
        known[id(node)] = 1 + sum(_n_nodes(part, known) for part in parts)
    return known[id(node)]


def _require_own_places(config: Mapping[str, Any], settings: Settings, *, kind: BundleKind) -> None:
    """Raise DataError for a config that names a place outside the bundle."""
    if bundled_config(settings, kind=kind) != own_part(settings.model_dump(mode="json"), kind=kind):
        keys = ", ".join(["resources", *(f"{one.section}.{one.key}" for one in kind.inputs[:-1])])
        last = kind.inputs[-1]
        raise DataError(f"{CONFIG}: {keys} or {last.section}.{last.key} name a place outside the bundle")
    if kind is AUDIT and settings.real_data:
        raise DataError(f"{CONFIG}: it marks the corpus as real personal data, which is never bundled")
    if "run" not in config:
        raise DataError(f'{CONFIG}: the key "run" is missing')


def _require_possible(settings: Settings, *, kind: BundleKind, n_files: int) -> None:
    """Raise DataError for a config that would keep this machine busy for ever."""
    asked = {
        "shards": (settings.shards, n_files),
        "statistics.resamples": (settings.statistics.resamples, MOST_RESAMPLES),
        **(_audit_sizes(settings) if kind is AUDIT else _grid_sizes(settings.hook_audit)),
    }
    for key, (value, most) in asked.items():
        if value > most:
            raise DataError(f'{CONFIG}: "{key}" is {value}; at most {most} is run again from this bundle')


def _audit_sizes(settings: Settings) -> dict[str, tuple[int, int]]:
    """Return key → its value, and what is run again at most."""
    if settings.corpus.source != "synthetic":
        return {}
    return {
        "corpus.max_words": (settings.corpus.max_words, MOST_WORDS),
        "corpus.n_facts": (settings.corpus.n_facts, MOST_WORDS),
    }


def _grid_sizes(grid: HookAudit) -> dict[str, tuple[int, int]]:
    """Return the same for the grid, without making its plan."""
    epsilons = len(grid.epsilons)
    canaries, adaptive = grid.canaries, grid.adaptive
    draws = len(canaries.classes) * len(canaries.seeds)
    rounds = len(adaptive.development_seeds) + len(adaptive.check_seeds)
    realisations = len(grid.corpora) * len(grid.seeds) + rounds
    cells = len(grid.corpora) * len(grid.seeds) * len(grid.modes) * len(grid.defenses) * (len(grid.attacks) + 1)
    cells += draws * len(canaries.defenses) + rounds * len(adaptive.defenses) * (len(adaptive.probes) + 1)
    documents = realisations * (grid.indexed + grid.held_out) + draws * (canaries.per_seed + canaries.held_out)
    return {
        "hook_audit.max_words": (grid.max_words, MOST_WORDS),
        "cells of hook_audit": (cells * epsilons + 2 * len(grid.attacks), MOST_CELLS),
        "documents of hook_audit": (documents, MOST_DOCUMENTS),
    }


def checksum_faults(opened: Opened) -> Iterator[str]:
    """Yield every file whose bytes are not those of the list of checksums, or that stands on one side alone."""
    found = {name: value for name, value in opened.digests.items() if name != CHECKSUMS}
    try:
        listed = parse_checksums((opened.folder / CHECKSUMS).read_bytes())
    except DataError as error:
        yield f"{CHECKSUMS}, {error}"
        return
    yield from differences(listed, found)
