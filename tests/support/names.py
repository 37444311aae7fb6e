"""Names that a store may be tempted to encode, decode, cut or misread."""

LITERAL_NAMES = [
    "a%3Db",
    "%2F",
    "dt=2013-01-01",
    "with space",
    "plus+and&amp;",
    "q?x#y",
    "naïve-日本-😀",
    "quote'\"<>",
    "back\\slash",
    "..dots..",
    "Error performing PUT x in y - Server returned non-2xx status code: 409",
]
