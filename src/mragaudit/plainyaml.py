"""YAML as people write it: plain values, and no key twice in one mapping."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


class RepeatedKeyError(yaml.YAMLError):
    """A mapping has a key twice; YAML's own reader drops the first without a word."""


def plain_yaml(text: str | bytes) -> Any:
    """Return what a YAML text holds; raises yaml.YAMLError for all that is none, and for a key that stands twice."""
    loader = yaml.SafeLoader(text)
    try:
        top = loader.get_single_node()
        if top is None:
            return None
        _require_single_keys(top)
        return loader.construct_document(top)
    except ValueError as error:  # such as 2024-13-45, which has the form of a date
        raise yaml.YAMLError(
            f"a value has the form of a date or number and is none ({error}); put text in quotes"
        ) from error
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def read_plain(path: Path) -> Any:
    """Return what a YAML file in UTF-8 holds.

    Raises FileNotFoundError where there is none, and yaml.YAMLError for one that cannot be read or holds no such thing.
    """
    try:
        return plain_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise yaml.YAMLError(error.strerror) from error
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(f"this is not UTF-8 ({error})") from error


def repeated_key(paths: Iterable[Path]) -> str | None:
    """Return file, line and key of the first key that stands twice, None where none does.

    Files that others have read already, and may read in another way: any other fault is theirs to find.
    """
    for path in paths:
        try:
            plain_yaml(path.read_bytes())
        except RepeatedKeyError as error:
            return f"{path}, {error}"
        except yaml.YAMLError:
            continue
    return None


def _require_single_keys(top: yaml.Node) -> None:
    """Raise RepeatedKeyError for the first mapping that has a key twice, before `<<` is merged into any."""
    left, seen = [top], {id(top)}
    while left:
        node = left.pop()
        if isinstance(node, yaml.MappingNode):
            _require_single_keys_of(node)
            below = [part for pair in node.value for part in pair]
        else:
            below = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        fresh = [part for part in below if id(part) not in seen]
        seen.update(map(id, fresh))
        left += reversed(fresh)


def _require_single_keys_of(mapping: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for node, _ in mapping.value:
        if not isinstance(node, yaml.ScalarNode):
            continue
        key, line = (node.tag, node.value), node.start_mark.line + 1
        if key in lines:
            raise RepeatedKeyError(
                f'line {line}: the key "{node.value}" stands there already on line {lines[key]}; keep one'
            )
        lines[key] = line
