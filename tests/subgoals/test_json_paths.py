import pytest

from poc.subgoals.paths import PathError, parse_path

DOCUMENT = {"a": {"b": [1, {"c": "x"}]}, "a b": 2, "naïve": 3, "x-y": 4, "list": [[1, 2], [3]]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a.b[0]", [1]),
        ("$.a.b[-1].c", ["x"]),
        ("$.a.b[-3]", []),
        ("$.a.b[7]", []),
        ('$["a b"]', [2]),
        ("$['a b']", [2]),
        ("$.naïve", [3]),
        ("$.x-y", [4]),
        ("$.list[*][*]", [1, 2, 3]),
        ("$.list[*][0]", [1, 3]),
        ("$.a[0]", []),
        ("$.a.b.c", []),
        ("$.missing.deeper", []),
        ("$", [DOCUMENT]),
    ],
)
def test_what_paths_find(path, found):
    assert parse_path(path).walk(DOCUMENT) == found


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a.b", 'Did you mean "$.a.b"?'),
        ("[0]", 'Did you mean "$[0]"?'),
        ("$a", "expected '.' or '[' at character 2, found 'a'"),
        ("$.", "found the end"),
        ("$..a", "character 3"),
        ("$.1a", "expected a key"),
        ("$[1", "expected ']'"),
        ("$[a]", "a quoted key"),
        ('$["a]', 'the closing "'),
        ('$[""]', "not empty"),
        ("$.*", "expected a key"),
        ("$.a ", "character 4"),
        ("", "does not start with $"),
    ],
)
def test_paths_that_are_refused(path, words):
    with pytest.raises(PathError) as caught:
        parse_path(path)
    assert words in str(caught.value)
