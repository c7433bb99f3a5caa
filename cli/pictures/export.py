"""Save a picture as one self-contained file: SVG, HTML or plain text."""

import io
import re
from pathlib import Path

from rich.console import Console, RenderableType

from tinygrad_tf.errors import InputError

KINDS = (".svg", ".html", ".txt")
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"

# rich fills these in; its own formats fetch a font over the network.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: FONTS; font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONTS", FONTS)

_HTML = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>TITLE</title>
<style>
{stylesheet}
body {{ color: {foreground}; background-color: {background}; }}
pre {{ font-family: FONTS; line-height: 1.2; }}
</style>
</head>
<body>
<pre>{code}</pre>
</body>
</html>
""".replace("FONTS", FONTS)


def check_target(path: Path, *, force: bool) -> None:
    """Refuse, before any work is done, a file that cannot be written as a picture.

    Raises InputError: the ending is none of .svg, .html and .txt, or the file exists.
    """
    if path.suffix.lower() not in KINDS:
        raise InputError(
            f"{path}: pictures are saved as {', '.join(KINDS)}, not as {path.suffix or 'this'}",
            f"name it {path.stem}.svg",
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}", f"mkdir {path.parent}")
    if path.exists() and not force:
        raise InputError(f"{path} exists already", "name another file or add --force")


def save(
    picture: RenderableType, path: Path, *, title: str, width: int = 100, force: bool = False
) -> None:
    """Write `picture` to `path`, in the format that its ending names; same picture, same bytes.

    Raises InputError as `check_target` does, FailedError where it cannot be written; then nothing
    is left behind.
    """
    from tinygrad_tf.storage.atomic import write_atomically

    check_target(path, force=force)
    kind = path.suffix.lower()
    console = Console(
        record=True,
        width=width,
        file=io.StringIO(),
        force_terminal=kind != ".txt",
        color_system=None if kind == ".txt" else "truecolor",
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
        _environ={},
    )
    console.print(picture)
    if kind == ".svg":
        text = console.export_svg(title=title, code_format=_SVG, unique_id=_identifier(title))
    elif kind == ".html":
        heading = title.replace("&", "&amp;").replace("<", "&lt;")
        text = console.export_html(
            code_format=_HTML.replace("TITLE", heading.replace("{", "{{").replace("}", "}}"))
        )
    else:
        text = console.export_text()
    write_atomically(path, text.encode())


def _identifier(title: str) -> str:
    """A name for the styles of an SVG, so that several on one page do not mix."""
    return "tt-" + (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "picture")
