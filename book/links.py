#!/usr/bin/env python3
"""A preprocessor of mdBook: links to files outside docs/ lead to the repository.

Pages link to each other and to files of the repository by relative paths, so that they work where
the repository is shown. A site has only the pages.
"""
import json
import os.path
import re
import sys

REPOSITORY = "https://github.com/tidegate/tidegate"
DOCS = "docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def on_the_site(page, link):
    """Returns the address of a link of `page`, a path below docs/, on the site."""
    path, mark, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return link
    target = os.path.normpath(os.path.join(DOCS, os.path.dirname(page), path))
    if target.startswith(DOCS + "/") and not path.endswith("/"):
        # mdBook makes index.html of README.md, but leaves the links to it.
        return re.sub(r"\bREADME\.md$", "index.md", path) + mark + anchor
    kind = "tree" if path.endswith("/") else "blob"
    return f"{REPOSITORY}/{kind}/main/{target}{mark}{anchor}"


def rewrite(item):
    """Rewrites the links of a chapter and of those below it; separators and titles have none."""
    chapter = item.get("Chapter") if isinstance(item, dict) else None
    if not chapter:
        return
    page = chapter.get("source_path")
    if page:
        chapter["content"] = LINK.sub(lambda link: f"]({on_the_site(page, link[1])})", chapter["content"])
    for below in chapter["sub_items"]:
        rewrite(below)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    for item in book.get("items") or book["sections"]:
        rewrite(item)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
