"""The text templates, compiled once."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


class Templates:
    """Templates of a folder; an undefined name is an error."""

    def __init__(self, folder: Path) -> None:
        """Take the templates below ``folder``."""
        self._environment = Environment(
            loader=FileSystemLoader(folder),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # configuration files of a node, never a web page
            autoescape=False,  # noqa: S701
            auto_reload=False,
        )

    def render(self, name: str, **values: object) -> str:
        """Render a template.

        Raises:
            jinja2.UndefinedError: The template names a value that it was not given.
        """
        return self._environment.get_template(name).render(**values)
