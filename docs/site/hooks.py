"""What `mkdocs build --strict` does not check by itself: anchors, and that no page loads anything from the network."""

import logging
import re
from urllib.parse import unquote, urldefrag, urljoin

log = logging.getLogger("mkdocs.hooks")
FOREIGN = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
anchors = {}  # of each page, by its address
links = []  # of all pages: the page, its address, the target


def on_files(files, config):
    for file in list(files):
        if file.src_uri.startswith(("site/", "man/")) and not file.src_uri.endswith(".css"):
            files.remove(file)
    return files


def on_post_page(output, page, config):
    anchors[page.url] = set(re.findall(r'\bid="([^"]+)"', output))
    links.extend((page.file.src_uri, page.url, href) for href in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', page.content))
    for element in FOREIGN.findall(output):
        log.warning("%s loads from the network: %s", page.file.src_uri, element)
    return output


def on_post_build(config):
    for source, url, href in links:
        target, anchor = urldefrag(urljoin(url, href))
        if anchor and target in anchors and unquote(anchor) not in anchors[target]:
            log.warning("%s links to '%s': the page has no such heading", source, href)
