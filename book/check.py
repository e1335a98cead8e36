#!/usr/bin/env python3
"""Checks the site that mdBook has built: no page is missing, every link and anchor leads somewhere.

usage: book/check.py SITE, in the root of the repository
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from links import REPOSITORY

DOCS = Path("docs")
# mdBook's own pages: all pages in one, the list of pages, and the page for addresses that do not exist.
MADE = {"print.html", "toc.html", "404.html"}


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        link = attributes.get("href") or attributes.get("src")
        if link and tag != "link":
            self.links.append(link)


def orphans():
    """Returns the pages in docs/ that the table of contents lacks."""
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "SUMMARY.md").read_text()))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"SUMMARY.md"}
    return [f"docs/{page} is not in docs/SUMMARY.md" for page in sorted(there - listed)]


def in_the_repository(link):
    """Returns the path of a link to a file of the repository, or None."""
    found = re.match(re.escape(REPOSITORY) + r"/(?:blob|tree|edit)/main/([^#]*)", link)
    return found and Path(unquote(found[1]))


def broken(site, name, link, pages):
    """Returns true if a link of the page `name` leads nowhere."""
    path = in_the_repository(link)
    if path:
        return not path.exists()
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (site / name).parent / unquote(parts.path) if parts.path else site / name
    target = target.resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return True
    page = pages.get(str(target.relative_to(site)))
    return bool(parts.fragment and page and unquote(parts.fragment) not in page.anchors)


def main():
    site = Path(sys.argv[1]).resolve()
    wrong = orphans()
    pages = {str(path.relative_to(site)): Page(path.read_text()) for path in site.rglob("*.html")}
    checked = 0
    for name in sorted(pages.keys() - MADE):
        for link in pages[name].links:
            checked += 1
            if broken(site, name, link, pages):
                wrong.append(f"{name}: the link to {link} leads nowhere")
    if not any(index.stat().st_size > 100_000 for index in site.glob("searchindex*.js")):
        wrong.append("the site has no search index")
    print("\n".join(wrong + [f"{len(pages)} pages, {checked} links"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
