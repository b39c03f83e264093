"""Text as a tool shows it: markup resolved, mentions and links collected.

`markdown` covers the subset that Mattermost, Rocket.Chat, Discord and Teams share; `mrkdwn` is Slack's own markup. Both
return a dictionary: `text` without markup, `mentions` (words behind the @ that notify somebody), `links` (pairs of label and
address), `bold` and `code` (contents of such spans).

Sources: https://docs.slack.dev/messaging/formatting-message-text, https://spec.commonmark.org/0.31.2/ §2.4 and §6,
https://docs.mattermost.com/end-user-guide/collaborate/format-messages.html,
https://support.discord.com/hc/en-us/articles/210298617
"""

import re

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
LINK = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]\(<?((?:[^()\s<>\\]|\\.)+)>?(?:\s+\"[^\"]*\")?\)")
AUTOLINK = re.compile(r"<(https?://[^\s<>]+)>")
def new():
    return {"text": "", "mentions": [], "links": [], "bold": [], "code": []}


def _code(text, at, found):
    """The end of the code span or block that begins at `at`, or None; its content is literal."""
    fence = re.compile("`+").match(text, at)
    if not fence:
        return None
    mark = fence.group()
    end = fence.end()
    while (end := text.find(mark, end)) >= 0:
        stop = end + len(mark)
        if stop == len(text) or text[stop] != "`":
            content = text[fence.end() : end]
            if len(mark) < 3 and content.startswith(" ") and content.endswith(" ") and content.strip():
                content = content[1:-1]
            found["code"].append(content)
            found["text"] += content
            return stop
        while end < len(text) and text[end] == "`":
            end += 1
    found["text"] += mark
    return fence.end()


def is_word(character):
    """A space without width is no boundary."""
    return character.isalnum() or character == "\u200b"


def _span(text, at, mark, inside_words):
    """The end of the content of the emphasis whose mark begins at `at`, or None."""
    begin = at + len(mark)
    if begin >= len(text) or text[begin].isspace():
        return None
    if not inside_words and at and is_word(text[at - 1]):
        return None
    end = begin
    while (end := text.find(mark, end + 1)) > 0:
        after = text[end + len(mark) : end + len(mark) + 1]
        escaped = (len(text[:end]) - len(text[:end].rstrip("\\"))) % 2
        if not text[end - 1].isspace() and not escaped and (inside_words or not is_word(after)):
            return end
    return None


def markdown(text, mention=re.compile(r"(?!)"), found=None, rocket_chat=False):
    """`mention` matches text that notifies somebody; the group that took part is the word.

    In Rocket.Chat a single mark is bold, and nothing is an escape.
    """
    found = new() if found is None else found
    at = 0
    while at < len(text):
        here = text[at]
        if here == "`":
            at = _code(text, at, found)
            continue
        matched = mention.match(text, at)
        if matched:
            found["mentions"].append(matched[matched.lastindex])
            found["text"] += matched.group()
            at = matched.end()
            continue
        # An escaped @ notifies as well: the tools look for names before they look at markup.
        if here == "\\" and not rocket_chat and text[at + 1 : at + 2] and text[at + 1] in PUNCTUATION.replace("@", ""):
            found["text"] += text[at + 1]
            at += 2
            continue
        link = LINK.match(text, at)
        if link:
            label = markdown(link.group(1), mention)
            address = re.sub(r"\\(.)", r"\1", link.group(2))
            found["links"].append([label["text"], address])
            found["text"] += label["text"]
            at = link.end()
            continue
        auto = AUTOLINK.match(text, at)
        if auto:
            found["links"].append([auto.group(1), auto.group(1)])
            found["text"] += auto.group(1)
            at = auto.end()
            continue
        for mark, inside_words in (("**", True), ("__", False), ("~~", True), ("*", True), ("_", False)):
            end = _span(text, at, mark, inside_words) if text.startswith(mark, at) else None
            if end:
                inner = markdown(text[at + len(mark) : end], mention)
                for key in ("mentions", "links", "bold", "code"):
                    found[key] += inner[key]
                if mark == "**" or rocket_chat and mark == "*":
                    found["bold"].append(inner["text"])
                found["text"] += inner["text"]
                at = end + len(mark)
                break
        else:
            found["text"] += here
            at += 1
    return found


def mrkdwn(text, found=None):
    """Slack: <…> is a mention or a link, &amp; &lt; &gt; are characters, *bold*, _italic_, ~struck~ and code are marks."""
    found = new() if found is None else found
    at = 0
    while at < len(text):
        here = text[at]
        if here == "`":
            before = len(found["text"])
            at = _code(text, at, found)
            found["text"] = found["text"][:before] + _entities(found["text"][before:])
            continue
        special = re.compile(r"<([^<>]*)>").match(text, at)
        if special:
            _special(special.group(1), found)
            at = special.end()
            continue
        # Twice the same mark is none here: **x** shows as it is.
        if here in "*_~" and text[at + 1 : at + 2] != here and text[at - 1 : at] != here:
            end = _span(text, at, here, False)
            if end:
                inner = mrkdwn(text[at + 1 : end])
                for key in ("mentions", "links", "bold", "code"):
                    found[key] += inner[key]
                if here == "*":
                    found["bold"].append(inner["text"])
                found["text"] += inner["text"]
                at = end + 1
                continue
        entity = next((e for e in ENTITIES if text.startswith(e, at)), None)
        found["text"] += ENTITIES.get(entity, here)
        at += len(entity or here)
    return found


ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def _entities(text):
    return re.sub("&(amp|lt|gt);", lambda match: ENTITIES[match.group()], text)


def _special(inside, found):
    target, _, label = inside.partition("|")
    target = _entities(target)
    if target[:1] in "@!#" and target:
        word = target[1:].split("^")[0]
        if target[0] != "#":
            found["mentions"].append(word)
        found["text"] += _entities(label) or "@" + word
    else:
        shown = _entities(label) or target
        found["links"].append([shown, target])
        found["text"] += shown
