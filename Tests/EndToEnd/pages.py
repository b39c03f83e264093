"""The fenced blocks of README and docs, and the directives in front of them, which say how each is tested.

    <!-- file: NAME -->            the block is written to NAME, in a folder of the page's own
    <!-- merge: NAME -->           members of the object in the JSON file NAME; `merge: NAME KEY`: items of its list KEY
    <!-- run -->                   commands behind `$`, and their output; `exit=N`, `stdin=TEXT`
    <!-- start: NAME … -->         one command, which runs until `stop: NAME` or the end of the page; flags behind NAME are added
    <!-- irc: PORT NICK -->        a conversation with that port: `>` is sent, `<` must come, in order; `tls` and capabilities may follow
    <!-- from: FILE -->            all lines stand in that file of the repository, in this order
    <!-- tested: FILE … -->        that file of the repository tests it
    <!-- excerpt: WHY -->          nothing runs it

A `toml` block without a directive is a configuration, which the unit tests load. Blocks between `<!-- made: … -->` and
`<!-- end -->` are generated.
"""

import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DIRECTIVE = re.compile(r"<!-- (file|merge|run|start|stop|irc|from|tested|excerpt)(?:: (.*?))? -->$")


class Block:
    """A fenced block, or a `stop` by itself; `kind` is its directive or None."""

    def __init__(self, page, line, kind, argument, language="", text=""):
        self.page, self.line, self.kind, self.argument = page, line, kind, argument or ""
        self.language, self.text = language, text

    def __str__(self):
        return "%s:%d" % (self.page, self.line)


def all_pages():
    """README and everything in docs, relative to the repository."""
    found = ["README.md"]
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".md")]
    return sorted(found)


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """Those of a page, without generated ones; raises ValueError where a directive has no block."""
    found, pending, block, indent, generated = [], None, None, "", False
    for number, line in enumerate(read(page).splitlines(), 1):
        bare = line.strip()
        if block is not None:
            if bare == "```":
                block.text = "".join(block.lines)
                if not generated:
                    found.append(block)
                block = None
            else:
                block.lines.append((line[len(indent):] if line.startswith(indent) else line) + "\n")
            continue
        if bare.startswith("<!-- made: "):
            generated = True
        elif bare == "<!-- end -->":
            generated = False
        match = DIRECTIVE.match(bare)
        if match and match.group(1) == "stop":
            found.append(Block(page, number, "stop", match.group(2)))
        elif match:
            pending = (number, match.group(1), match.group(2))
        elif bare.startswith("```"):
            _, kind, argument = pending or (0, None, None)
            block = Block(page, number, kind, argument, bare[3:].strip())
            block.lines, indent, pending = [], line[:len(line) - len(line.lstrip())], None
        elif bare and pending:
            raise ValueError("%s:%d: no block follows" % (page, pending[0]))
    return found
