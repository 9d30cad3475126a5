"""The pages of the site that are in the checkout anyway; mkdocs runs this as a hook.

README, reference, results and the rest stay where they are read on their own; here each gets a
place on the site, the reference one for each chapter. A link between them leads to that place, one
to a file that is no page to nowhere: it is left as text. Headings have the anchors that they have
where the files are read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = "pydriver/site/pages/"
REFERENCE = "sql/README.md"  # with a page for each chapter
WHOLE = {
    "README.md": "index.md",
    "pydriver/README.md": "driver.md",
    "pydriver/pgrecall/adapters/README.md": "adapters.md",
    "sql/bi.md": "bi.md",
    "bench/README.md": "results/index.md",
    "bench/peers/README.md": "results/peers.md",
    "bench/TRIED.md": "results/tried.md",
    "migrations/README.md": "project/migrations.md",
    "migrations/NOTES.md": "project/notes.md",
    "migrations/STABLE.md": "project/stable.md",
    "migrations/CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    ".github/SECURITY.md": "project/security.md",
    ".github/CODE_OF_CONDUCT.md": "project/conduct.md",
    ".github/GOOD_FIRST_ISSUES.md": "project/first-issues.md",
}
"""File in the checkout, and its place on the site."""
TITLES = {"README.md": "Overview", "pydriver/README.md": "The driver, by task"}
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor that a heading has where the files are read."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", separator)


def chapters(text: str) -> dict[str, str]:
    """Split the reference into its chapters, by the file name of each."""
    head, *rest = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    found = {"index": head}
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        found[slug(title)] = f"# {title}\n{body}"
    return found


def outside_blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a page, and whether each is prose."""
    start = 0
    for block in FENCED.finditer(text):
        yield text[start : block.start()], True
        yield block.group(), False
        start = block.end()
    yield text[start:], True


def headings(text: str) -> list[str]:
    """Return the anchors of a page."""
    prose = "".join(part for part, is_prose in outside_blocks(text) if is_prose)
    return [slug(found) for found in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)]


class Site:
    """What is where."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}  # by place
        self.source: dict[str, str] = {}  # of each place
        self.anchors: dict[str, str] = {}  # of the reference: place of each
        self.pictures: dict[str, str] = {}  # place: file
        for source, place in WHOLE.items():
            self._add(source, place, (ROOT / source).read_text(encoding="utf-8"))
        reference = chapters((ROOT / REFERENCE).read_text(encoding="utf-8"))
        for name, text in reference.items():
            place = f"reference/{name}.md"
            for anchor in headings(text):
                self.anchors.setdefault(anchor, place)
            self._add(REFERENCE, place, text)

    def _add(self, source: str, place: str, text: str) -> None:
        self.text[place] = text
        self.source[place] = source

    def page(self, place: str) -> str:
        """Return a page with its links as they are on the site."""
        source = self.source[place]
        title = TITLES.get(source)
        front = f"---\ntitle: {title}\n---\n\n" if title else ""
        return front + self._linked(self.text[place], source, place)

    def _linked(self, text: str, source: str, place: str) -> str:
        return "".join(
            LINK.sub(lambda link: self._link(link, source, place), part) if is_prose else part
            for part, is_prose in outside_blocks(text)
        )

    def _link(self, link: re.Match[str], source: str, place: str) -> str:
        picture, words, target = link.groups()
        if re.match(r"\w+:", target):
            return link.group()
        if not picture:
            words = LINK.sub(lambda inner: self._link(inner, source, place), words)
        file, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        if not file:
            path = source
        if path == REFERENCE:
            there = self.anchors[anchor] if anchor else "reference/index.md"
            if (
                anchor
                and self.text[there].startswith("# ")
                and headings(self.text[there])[0] == anchor
            ):
                anchor = ""
        elif path in WHOLE:
            there = WHOLE[path]
        elif path.startswith(PAGES) and path.endswith(".md"):
            there = path.removeprefix(PAGES)
        elif Path(path).suffix in PICTURES:
            there = f"pictures/{Path(path).name}"
            self.pictures[there] = path
        else:
            return words
        near = posixpath.relpath(there, posixpath.dirname(place) or ".")
        return f"{picture}[{words}]({near}{'#' if anchor else ''}{anchor})"

    def own_page(self, place: str, text: str) -> str:
        """Return a page of pages/ with its links as they are on the site."""
        return self._linked(text, PAGES + place, place)


def nav(site: Site) -> list[Any]:
    """Return the order of the pages."""
    names = [place for place in site.text if place.startswith("reference/")]
    python = ("index", "rows", "errors", "models", "extraction")
    tutorials = ("agent", "langgraph", "openai-agents", "claude", "analyst", "dba")
    return [
        {"Home": ["index.md", "not.md"]},
        {"Tutorials": [f"tutorials/{name}.md" for name in tutorials]},
        {
            "Driver": [
                "driver.md",
                "adapters.md",
                {"Python": [f"python/{name}.md" for name in python]},
            ]
        },
        {"SQL": [*names, "bi.md"]},
        {"Results": ["results/index.md", "results/peers.md", "results/tried.md"]},
        {
            "Project": [
                *(place for place in WHOLE.values() if place.startswith("project/")),
                "project/publishing.md",
            ]
        },
    ]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings their anchors, and pages their order."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    config.nav = nav(Site())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures of the checkout."""
    site = Site()
    for place in site.text:
        files.append(File.generated(config, place, content=site.page(place)))
    for place, path in site.pictures.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page in pages/, which are those of the checkout, to the site."""
    site = Site()
    place = page.file.src_uri
    return markdown if place in site.text else site.own_page(place, markdown)
