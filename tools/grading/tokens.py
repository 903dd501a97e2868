"""Compares texts token by token, so that neither the layout nor a comment
matters: windows of WINDOW tokens, two or three lines of code.
"""

import re

# Tokens of a window; and of the shortest text that says anything alone.
WINDOW, SHORTEST = 17, 7

TOKEN = re.compile(r"\w+|->|\+\+|--|&&|\|\||<<=?|>>=?|[-+*/%&|^<>=!]=|[^\w\s]")


def tokens(text):
    """(the tokens of a text, the number of the line of each). Signs that begin
    a line may be those of a patch, a quotation or a list, and are no tokens."""
    words, places = [], []
    for number, line in enumerate(text.split("\n"), 1):
        found = TOKEN.findall(re.sub(r"^[-+>#*|\s]+", "", line))
        words += found
        places += [number] * len(found)
    return words, places


def bare(text):
    """A text without C's comments; lines keep their numbers."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m[0].count("\n"),
                  text, flags=re.S)


def windows(words):
    """All windows of some tokens; all of the tokens if there are fewer."""
    size = min(WINDOW, len(words))
    return {tuple(words[i:i + size]) for i in range(len(words) - size + 1)} \
        if size >= SHORTEST else set()


def share(text, original, known):
    """How much of the text `original`, of what is not in the text `known`, is
    in another one: from 0 to 1."""
    own, there, both = (windows(tokens(bare(t))[0])
                        for t in (original, text, known))
    own -= both
    return len(own & there) / len(own)
