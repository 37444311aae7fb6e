"""MkDocs' hooks: pages that lie elsewhere than in docs/, and programs of examples/, become part of the site."""

import json
import logging
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "lib/spark/README.md",
    "lib/tables/README.md",
)
"""Pages outside of docs/, from the root. They have the same places in the site."""
_LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(?=[)#])")
_EXAMPLE = re.compile(r"^\[examples/(\S+)\]\(\.\./examples/\1\)$", re.MULTILINE)
"""A line that is a link to a program, and nothing else."""
_FROM_ELSEWHERE = re.compile(
    r"<(?:script|img|iframe)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//[^>]*stylesheet"
)
log = logging.getLogger("mkdocs.plugins.headgate")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in ELSEWHERE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """With programs in the place of links to them, and with links as they lead inside of the site."""
    source = Path(str(page.file.abs_src_path)).resolve()
    docs = Path(config.docs_dir).resolve()

    def led(found: re.Match[str]) -> str:
        target = (source.parent / found[1]).resolve()
        if target.is_relative_to(docs):
            place = target.relative_to(docs).as_posix()
        elif target.is_relative_to(ROOT) and target.relative_to(ROOT).as_posix() in ELSEWHERE:
            place = target.relative_to(ROOT).as_posix()
        else:
            return found[1]  # which MkDocs refuses
        return os.path.relpath(place, PurePosixPath(page.file.src_uri).parent)

    return _LINK.sub(led, _EXAMPLE.sub(_shown, markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    if found := _FROM_ELSEWHERE.search(output):
        log.warning("%s wants something from elsewhere: %s", page.file.src_uri, found[0])
    return output


def _shown(link: re.Match[str]) -> str:
    """The blocks of a program or notebook."""
    path = ROOT / "examples" / link[1]
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return f'```python title="examples/{link[1]}"\n{text}```'
    cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(text)["cells"]]
    return "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for source, kind in cells)
