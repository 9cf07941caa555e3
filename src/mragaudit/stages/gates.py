"""Expected against actual rows: a stage that lost a trial stops the run and names it."""

from __future__ import annotations

from collections.abc import Iterable

from mragaudit.errors import ConfigError, GateError

_SHOWN = 5


def require_same_ids(*, expected: Iterable[str], actual: Iterable[str], where: str) -> None:
    """Raise GateError, naming ids, unless both sides hold the same ids, each once."""
    wanted, found = list(expected), list(actual)
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise GateError(f"{where}: {len(missing)} of {len(wanted)} trials are missing: {_some(missing)}; {_MEND}")
    extra = sorted(set(found) - set(wanted))
    if extra:
        raise GateError(f"{where}: {len(extra)} trials belong to no earlier stage: {_some(extra)}; {_MEND}")
    if len(found) != len(set(found)):
        repeated = sorted({name for name in found if found.count(name) > 1})
        raise GateError(f"{where}: trials stand twice: {_some(repeated)}; {_MEND}")


def require_enough_documents(n_documents: int, *, k: int) -> None:
    """Raise ConfigError when more documents are to be retrieved than there are."""
    if k > n_documents:
        raise ConfigError(
            f'config key "retrieve.k" is {k} and the corpus has {n_documents} documents; '
            "k may be at most the number of documents"
        )


_MEND = "run the stage that writes this file again (--forcerun)"


def _some(ids: list[str]) -> str:
    shown = ", ".join(ids[:_SHOWN])
    return f"{shown} and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else shown
