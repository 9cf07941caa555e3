"""`mragaudit plan` does not take a config for something to make."""

from typer.testing import CliRunner

from mragaudit.cli import app
from mragaudit.errors import ConfigError


def test_a_config_in_the_place_of_a_target_is_refused_with_the_option_to_use() -> None:
    found = CliRunner().invoke(app, ["plan", "my.yaml"])
    assert isinstance(found.exception, ConfigError)
    assert str(found.exception) == "my.yaml is nothing that can be made; to plan with it, say --configfile my.yaml"
