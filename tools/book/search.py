"""The index of the book's search.

An entry is [title, address, pieces of text]. `words` maps each word to the
entries that have it and their costs; the page adds the costs of the words of a
query and shows the cheapest entries first. So the costs set the order: a
definition, whose name is the word, comes before a heading that has it, and any
name before a mention. Pieces of text end between words, because the page shows
a piece as it is.
"""

import json
import re
import textwrap

# The kinds of entries, the best first.
KINDS = ("term", "code", "chapter", "section", "static")

ARTICLES = {"a", "an", "the"}
OTHER_WORDS = 10    # for each other word of a name, up to four of them
MENTION = 200       # less the number of times, up to 40
PREFIX = 50         # only the beginning of a word was typed
PIECE = 150         # characters


def words(text):
    return re.findall(r"\w+", text.lower())


def costs(kind, name, text):
    """{word: cost} of an entry."""
    found = {}
    for word in words(text):
        found[word] = max(found.get(word, MENTION) - 1, MENTION - 40)
    for alternative in name.split(", ") if kind == "term" else [name]:
        parts = set(words(alternative)) - ARTICLES
        cost = KINDS.index(kind) + OTHER_WORDS * min(len(parts) - 1, 4)
        for word in parts:
            found[word] = min(found.get(word, MENTION), cost)
    return found


def pieces(text):
    return textwrap.wrap(text, PIECE, break_long_words=False,
                         break_on_hyphens=False)


class Index:
    def __init__(self):
        self.entries, self.words = [], {}

    def add(self, kind, name, address, text, title=None):
        for word, cost in costs(kind, name, text).items():
            self.words.setdefault(word, []).extend([len(self.entries), cost])
        self.entries.append([title or name, address, pieces(text)])

    def script(self):
        """The index as a script, because a page opened from a file system may
        load no other kind of file."""
        index = {"entries": self.entries, "words": self.words,
                 "prefix": PREFIX}
        return "const INDEX = " + json.dumps(
            index, ensure_ascii=False, separators=(",", ":")) + ";\n"
