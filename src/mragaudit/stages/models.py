"""From roles in the config to models: identity first, weights only when needed."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from mragaudit.config.settings import EmbedderRole, Role, Roles, Settings
from mragaudit.errors import ConfigError
from mragaudit.llm.http_endpoint import is_loopback
from mragaudit.llm.retry import RetryingBackend
from mragaudit.protocols import Backend, Embedder, ModelIdentity, TokenEmbedder
from mragaudit.registry import checked_options, create, load, locate

LANGUAGE_ROLES = ("translator", "back_translator", "judge", "generator")
TRANSLATING_ROLES = ("translator", "back_translator")
REMOTE_OPTION = "base_url"


def identity_of(role: Role) -> ModelIdentity:
    """Return what determines a role's answers, without loading its model; raises ConfigError for bad options."""
    options = checked_options("llm", role.backend, options=_options(role))
    identity: ModelIdentity = locate("llm", role.backend).identify(**options)
    return identity


def load_backend(role: Role, *, threads: int) -> Backend:
    """Return a role's model, loaded, its transport failures tried again: by itself if it does so, else from outside."""
    options = {**_options(role), "threads": threads}
    if getattr(locate("llm", role.backend), "retries_itself", False):
        persistent: Backend = create("llm", role.backend, options={**options, "attempts": role.attempts})
        return persistent
    backend: Backend = create("llm", role.backend, options=options)
    return RetryingBackend(backend, attempts=role.attempts)


def load_embedder(role: EmbedderRole, *, threads: int) -> Embedder:
    """Return the embedder, loaded."""
    options = {"model": role.model, "threads": threads, **role.options}
    embedder: Embedder = create("embedder", role.backend, options=options)
    return embedder


def embedder_identity(role: EmbedderRole) -> ModelIdentity:
    """Return what determines the embedder's vectors, without loading its model.

    Raises MissingPackageError, and ConfigError for bad options or where there is no such model.
    """
    options = checked_options("embedder", role.backend, options={"model": role.model, **role.options})
    identity: ModelIdentity = load("embedder", role.backend).identify(**options)
    return identity


def as_token_embedder(embedder: Embedder) -> TokenEmbedder:
    """Return the embedder as one that scores by tokens; raises ConfigError for one that gives vectors alone."""
    if not isinstance(embedder, TokenEmbedder):
        raise ConfigError(
            f'config key "retrieve.method": the embedder {embedder.identity.backend} gives one vector a text and '
            "nothing else; use method: dense"
        )
    return embedder


def _options(role: Role) -> dict[str, object]:
    given = {"model": role.model, "sha256": role.sha256, "rendering": role.rendering}
    return {**given, "context_tokens": role.context_tokens, **role.options}


def require_options(settings: Settings, *, roles: Iterable[str] = LANGUAGE_ROLES) -> None:
    """Raise ConfigError for a role, or the embedder, whose backend does not take its options.

    Nothing is asked or loaded now, and no package of a model is needed: what is wrong with the judge's options must
    not come out after the hours of the stages before it.
    """
    for name in (*roles, "embedder"):
        try:
            _require_options_of(getattr(settings.roles, name))
        except ConfigError as error:
            raise ConfigError(f'config key "roles.{name}.options": {error}') from error


def _require_options_of(role: Role | EmbedderRole) -> None:
    if isinstance(role, EmbedderRole):
        checked_options("embedder", role.backend, options={"model": role.model, **role.options})
    elif getattr(locate("llm", role.backend), "asks_elsewhere", False):
        identity_of(role)
    else:
        checked_options("llm", role.backend, options=_options(role))


def _host_of(url: str) -> str:
    """Return the host that a client would find, with or without a scheme; the address itself where there is none."""
    try:
        return urlsplit(url).hostname or urlsplit(f"//{url}").hostname or url
    except ValueError:  # brackets without an end, a host that is no address
        return url


def require_local(settings: Settings) -> None:
    """Raise ConfigError when real personal data would leave this machine without `allow_remote: true`."""
    if not settings.real_data or settings.allow_remote:
        return
    for name in Roles.model_fields:
        url = getattr(settings.roles, name).options.get(REMOTE_OPTION)
        if not url:
            continue
        host = _host_of(str(url))
        if not is_loopback(host):
            raise ConfigError(
                f'config key "roles.{name}.options.{REMOTE_OPTION}" would send real personal data to {host}; '
                "set allow_remote: true to allow it, or corpus.personal_data: synthetic if nobody's data is in it"
            )
