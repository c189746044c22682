"""Redaction: what goes, what stays, and that everything comes back."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import InputError
from poc.redaction import KINDS, Redactor

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared" / "logs" / "openai_chat"

# Made up, in the shapes that vendors use.
FOUND = [
    ("secret", "sk-proj-Ab3dEf6hIj9kLm2nOp5q"),
    ("secret", "sk-ant-api03-Ab3dEf6hIj9kLm2nOp5q-xyz"),
    ("secret", "ghp_" + "a1B2" * 9),
    ("secret", "AKIA" + "ABCDEFGHIJKLMN12"),
    ("secret", "AIza" + "x1" * 17 + "y"),
    ("secret", "xoxb-123456789012-abcdefABCDEF"),
    ("secret", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl"),
    ("secret", "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef==\n-----END RSA PRIVATE KEY-----"),
    ("email", "mia.li3818@example.com"),
    ("email", "jörg+tag@mail.example.co.uk"),
    ("phone", "+1 (415) 555-2671"),
    ("phone", "+81-90-1234-5678"),
    ("phone", "415-555-2671"),
    ("phone", "(415) 555-2671"),
    ("phone", "090-1234-5678"),
    ("phone", "03-1234-5678"),
    ("phone", "020 7946 0958"),
    ("phone", "06 12 34 56 78"),
    ("card", "4111 1111 1111 1111"),
    ("card", "4111111111111111"),
    ("card", "3782-822463-10005"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
    ("ssn", "123-45-6789"),
    ("ip", "203.0.113.77"),
    ("ip", "2001:db8:0:1:1:1:1:1"),
]


@pytest.mark.parametrize(("kind", "value"), FOUND, ids=lambda text: text[:24])
@pytest.mark.parametrize("frame", ["{}", "see {}.", "({})", '{{"a": "{}"}}', "a\n{}\nb", "これは{}です", "x, {}, y"])
def test_values_are_found_wherever_they_stand(kind, value, frame):
    redactor = Redactor()
    text = frame.format(value)
    assert redactor.redact(text) == frame.format(f"<{kind}_1>")
    assert redactor.counts == {kind: 1}
    assert redactor.restore(redactor.redact(text)) == text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter22", "hunter22"),
        ('{"password": "correct horse"}', "correct horse"),
        ('{"args": "{\\"api_key\\": \\"abc123def\\"}"}', "abc123def"),
        ("DB_PASSWORD: s3cret!x", "s3cret!x"),
        ("client_secret='abc def'", "abc def"),
        ("Authorization: Bearer abcdef1234567890", "abcdef1234567890"),
        ("postgres://bob:pa55word@db.example/x", "pa55word"),
        ('{"password": "with \\"quotes\\" in"}', 'with \\"quotes\\" in'),
    ],
)
def test_assigned_secrets_go_and_their_names_stay(text, hidden):
    redactor = Redactor()
    redacted = redactor.redact(text)
    assert hidden not in redacted
    assert redacted == text.replace(hidden, "<secret_1>")
    assert redactor.redact(redacted) == redacted
    assert redactor.restore(redacted) == text


@pytest.mark.parametrize(
    "text",
    [
        "order #W2378156 on 2024-05-15 at 12:30:45, flight HAT136, reservation 4WQ150",
        "payment credit_card_4421486, gift_card_8887175, item 6777246137, user mia_li_3818",
        "2024-05-15T15:00:00+09:00, 1715750400000, 1715750400.123",
        "550e8400-e29b-41d4-a716-446655440000, e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "version 1.2.3, v10.0.19041.1, 127.0.0.1:8000, 0.0.0.0, 12:30, std::vector",
        "2 * 51 + 41 + 1234567, -120.5, 3.14159265358979, 1e10, $1,234,567.89",
        "Your password: please reset it. The secret: kindness. passport number, secretary: Jo, tokens: 1200",
        "def f(password: str, api_key=None)  # password: string",
        "call_8wXzL0nTq2Yb3VdR5sKp, toolu_01A09q90qw90lq917835lq9, tool_call_id",
        "4111111111111112 fails the check sum; 1234567890123 too",
        "ISBN 978-3-16-148410-0, zip 94107-1234, 10-12-2024",
    ],
)
def test_ids_dates_and_prose_stay(text):
    redactor = Redactor()
    assert redactor.redact(text) == text
    assert redactor.counts == {}


def test_same_value_same_placeholder_across_texts():
    redactor = Redactor()
    assert redactor.redact("a@x.org b@x.org") == "<email_1> <email_2>"
    assert redactor.redact(["b@x.org", {"c@x.org": "a@x.org"}]) == ["<email_2>", {"<email_3>": "<email_1>"}]
    assert redactor.restore({"to": "<email_2>", "n": 3}) == {"to": "b@x.org", "n": 3}
    assert redactor.counts == {"email": 3}


def test_fields_give_their_values_away():
    redactor = Redactor()
    message = {"password": "plain", "phone": "5551234567", "phone_id": "5551234567", "fax": 5551234567, "n": 5551234567}
    assert redactor.redact(message) == {
        "password": "<secret_1>",
        "phone": "<phone_1>",
        "phone_id": "5551234567",
        "fax": "<phone_number_1>",
        "n": 5551234567,
    }
    assert redactor.restore(redactor.redact(message)) == message


def test_schemas_are_not_values():
    schema = {"properties": {"password": {"type": "string"}, "email": {"type": "string"}}, "required": ["password"]}
    assert Redactor().redact(schema) == schema


def test_bare_numbers_in_json_stay_json():
    redactor = Redactor()
    text = '{"card": 4111111111111111, "list": [4111111111111111], "pin_password": 12345}'
    redacted = redactor.redact(text)
    assert json.loads(redacted) == {
        "card": "<card_number_1>",
        "list": ["<card_number_1>"],
        "pin_password": "<secret_number_1>",
    }
    assert redactor.restore(redacted) == text
    assert redactor.restore(json.loads(redacted)) == json.loads(text)


@pytest.mark.parametrize(
    "inner", ["line\nmia@x.org", "tab\tmia@x.org", "\u2028mia@x.org", 'q"mia@x.org"', "a\\mia@x.org"]
)
def test_json_escapes_are_left_alone(inner):
    redactor = Redactor()
    for depth in (1, 2):
        text = inner
        for _ in range(depth):
            text = json.dumps({"v": text})
        back = json.loads(redactor.redact(text))
        for _ in range(depth - 1):
            back = json.loads(back["v"])
        assert back == {"v": inner.replace("mia@x.org", "<email_1>")}


def test_text_that_looks_like_a_placeholder_is_never_given_out():
    redactor = Redactor()
    text = "literal <email_1> and <email_2>, real a@x.org"
    assert redactor.redact(text) == "literal <email_1> and <email_2>, real <email_3>"
    assert redactor.restore(redactor.redact(text)) == text


def test_kinds_can_be_chosen():
    redactor = Redactor(kinds=["secret"])
    assert redactor.redact("a@x.org password=hunter22") == "a@x.org password=<secret_1>"
    with pytest.raises(InputError, match='Did you mean "email"'):
        Redactor(kinds=["emial"])
    assert Redactor().redact({"a": None, "b": (1, True), "c": 1.5}) == {"a": None, "b": (1, True), "c": 1.5}


def test_values_are_not_shown():
    redactor = Redactor()
    redactor.redact("a@x.org")
    assert "x.org" not in repr(redactor)


@pytest.mark.parametrize(
    "unit",
    ["a@", "a.", "@a.", "[1, ", "phone ", "phone" + " " * 50, "password", "password=", "secret: ", "1 ", "1-", "1.",
     ":", "a:", "0 1", "+1", "-----BEGIN PRIVATE KEY-----", "bearer ", "://a:", "eyJaaaaaaaa.", "sk-", "A",
     "AB12", "\\", '"', "<"],
)  # fmt: skip
def test_no_text_takes_long(unit):
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    redactor = Redactor()
    assert redactor.restore(redactor.redact(text)) == text
    assert time.process_time() - started < 5


values = st.sampled_from(
    [value for _, value in FOUND] + ["password=hunter22", '"api_key": "abc def"', "phone: 5551234"]
)
looks = st.builds("<{}_{}>".format, st.sampled_from([*KINDS, "card_number"]), st.integers(1, 3))
joints = st.text(alphabet=' \n\t"\\,:;<>[]{}@.+-=_/ n0159abzé電話', max_size=6)
texts = st.lists(st.one_of(values, looks, joints, st.text(max_size=8)), max_size=8).map("".join)
structures = st.recursive(
    st.one_of(texts, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(texts, st.sampled_from(["password", "phone", "email"])), inner, max_size=4),
    ),
    max_leaves=8,
)


@given(st.lists(texts, min_size=1, max_size=3))
@settings(deadline=None, max_examples=400)
def test_one_text_comes_back_and_doing_it_twice_changes_nothing(parts):
    redactor = Redactor()
    redacted = redactor.redact(parts)
    assert redactor.restore(redacted) == parts
    assert redactor.redact(redacted) == redacted
    assert redactor.redact(parts) == redacted


@given(structures)
@settings(deadline=None, max_examples=200)
def test_structures_come_back(value):
    redactor = Redactor()
    redacted = redactor.redact(value)
    assert redactor.restore(redacted) == value
    assert redactor.redact(redacted) == redacted


@given(structures)
@settings(deadline=None, max_examples=200)
def test_json_stays_json(value):
    redactor = Redactor()
    json.loads(redactor.redact(json.dumps(value)))
    json.loads(redactor.redact(json.dumps(value, ensure_ascii=False)))


@given(values, joints)
@settings(deadline=None, max_examples=200)
def test_nothing_found_is_left_in_the_text(value, joint):
    secret = re.sub(r'^(?:password=|phone: |"api_key": ")|"$', "", value)
    assert secret not in Redactor().redact(f"{joint} {value} {joint}")


@pytest.mark.parametrize("name", ["taubench_gpt-4o-airline.json", "taubench_single_run_airline.json"])
def test_real_runs_lose_nothing_but_addresses_of_people(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip("the shared logs are not beside this project")
    text = path.read_text(encoding="utf-8")
    log = json.loads(text)
    redactor = Redactor()
    redacted = redactor.redact(log)
    assert redactor.restore(redacted) == log
    assert set(redactor.counts) <= {"email"}
    emails = set(re.findall(r"[\w.+-]+@[\w-]+\.[\w.]*\w", text))
    assert redactor.counts.get("email", 0) >= 1
    left = json.dumps(redacted)
    assert not [email for email in emails if email in left]
