from hypothesis import given, settings
from hypothesis import strategies as st

from poc.redaction import Redactor
from poc.replay.masking import Mask

PIECES = st.sampled_from(
    [
        "order 17",
        "ann@example.com",
        "bob@example.org",
        "<email_1>",
        "+1 212 555 0100",
        "sk-abcdef0123456789abcdef",
        "{}",
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map(" ".join)


@settings(deadline=None)
@given(texts=st.lists(TEXTS, max_size=6))
def test_remembering_clean_texts_changes_nothing(texts):
    """Whatever other masks have seen, a mask gives what a redactor of its own would."""
    for _ in range(2):
        mask, plain = Mask(True), Redactor()
        for text in texts:
            assert mask.text(text) == plain.redact(text)
            data = {"a": [text], "b": 3}
            masked = mask.data(data)
            assert masked == plain.redact(data)
            assert mask.restore(masked) == plain.restore(masked)
        assert mask.counts == plain.counts


def test_switched_off_it_does_nothing():
    mask = Mask(False)
    assert mask.text("ann@example.com") == "ann@example.com"
    assert mask.data({"a": "ann@example.com"}) == {"a": "ann@example.com"}
    assert mask.restore("<email_1>") == "<email_1>"
    assert mask.counts == {}
