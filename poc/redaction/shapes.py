r"""What counts as a secret or as personal data: one `Shape` for each way of writing it.

Everything found has a form of its own or a check sum: keys, tokens, passwords
in assignments, e-mail addresses, phone numbers, payment cards (Luhn), IBANs
(ISO 7064 mod 97), US social security numbers, network addresses. Names,
street addresses and ids are not found. Precision comes first: ids, dates and
flight numbers must reach the model unharmed, or a replay measures something
else.

Texts may hold JSON, so a value never begins on the letter of an escape:
in ``\nmia@example.com`` the address is mia's. Nothing that looks like a
placeholder is ever part of a value. Knows no placeholder's number.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

import msgspec

KINDS = ("secret", "email", "phone", "card", "iban", "ssn", "ip")
"""What is looked for, in the words of the placeholders."""

LOOKS_ISSUED = rf"<(?:{'|'.join(KINDS)})(?:_number)?_[0-9]+>"
"""What looks like a placeholder."""

_SECRET_NAME = r"""(?:pass(?:word|wd|phrase|code)|pwd|secret|credentials?|client[_-]?secret
    |(?:api|access|private|signing|encryption)[_-]?key
    |(?:auth|access|refresh|session|security|bearer|api|id)[_-]?token)(?:[_-](?:key|hash|value))?"""
_PHONE_NAME = r"(?:(?:tele)?phone|mobile|fax|tel)(?:[ _-]?(?:number|no|num))?"
_WORDS = {
    # Not inside a word, not on the letter of an escape, but right after an escape.
    "START": r"""(?:(?<![A-Za-z0-9_\\])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\)(?![nrtbfu"/\\]))""",
    "END": r"(?![A-Za-z0-9_])",
    "FREE": rf"(?!{LOOKS_ISSUED})",
    "LETTER": r"A-Za-z0-9_\u00C0-\u024F\u0370-\u052F",
    "SECRET_NAME": f"(?i:{_SECRET_NAME})",
    "PHONE_NAME": f"(?<![A-Za-z])(?i:{_PHONE_NAME})",
}
_SECRET_KEY = re.compile(rf"(?:[A-Za-z0-9]+[_-])*{_SECRET_NAME}", re.IGNORECASE | re.VERBOSE)
_PHONE_KEY = re.compile(rf"(?:[A-Za-z]+[_-])*{_PHONE_NAME}", re.IGNORECASE)
_NO_SECRET = frozenset(
    ("none", "null", "true", "false", "undefined", "string", "str", "text", "optional", "redacted", "hidden")
)


class Shape(msgspec.Struct, frozen=True):
    """One way of writing a kind of value.

    The group ``value`` is what goes, else the whole match. hints: in a text
    whose lower case has none of them the shape is not searched. gate: nor
    where this cheaper expression finds nothing. part: what of the value goes,
    from its beginning; '' for none of it.
    """

    kind: str
    regex: re.Pattern[str]
    hints: tuple[str, ...] = ()
    gate: re.Pattern[str] | None = None
    part: Callable[[str], str] | None = None

    def may_be_in(self, text: str, folded: str) -> bool:
        """A quick look that spares most texts the search. `folded` is `text` in lower case."""
        if self.hints and not any(hint in folded for hint in self.hints):
            return False
        return self.gate is None or self.gate.search(text) is not None

    def found(self, match: re.Match[str]) -> tuple[int, str]:
        """Where the value of a match begins in the text, and the value; '' when it is none."""
        group = "value" if "value" in self.regex.groupindex else 0
        value = match[group]
        return match.start(group), value if self.part is None else self.part(value)


def kind_of_field(name: str, text: str) -> str | None:
    """The kind of a whole value that the name of its field gives away."""
    if _SECRET_KEY.fullmatch(name) and text and _is_secret(text):
        return "secret"
    if _PHONE_KEY.fullmatch(name) and re.fullmatch(r"[+(]?[0-9][0-9 ().-]+", text) and _is_phone(text):
        return "phone"
    return None


def is_card(text: str) -> bool:
    """Digits with the length and beginning of a payment card's brand that pass the Luhn check."""
    digits = re.sub(r"[ -]", "", text)
    if not _BRANDS.fullmatch(digits):
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


_BRANDS = re.compile(
    r"""4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})              # Visa
    |5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}  # Mastercard
    |3[47][0-9]{13}                                     # American Express
    |6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}            # Discover
    |35(?:2[89]|[3-8][0-9])[0-9]{12}                    # JCB
    |3(?:0[0-5]|[68][0-9])[0-9]{11}                     # Diners Club
    |62[0-9]{14,17}                                     # UnionPay""",
    re.VERBOSE,
)


def _iban(text: str) -> str:
    """The longest run of groups that passes the check; words in capitals may follow."""
    groups = text.split(" ")
    for end in range(len(groups), 0, -1):
        plain = "".join(groups[:end])
        if 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1:
            return " ".join(groups[:end])
    return ""


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # Those say nothing about anybody.
    if address.is_loopback or address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        return False
    return address.version == 4 or any(char.isdigit() for char in text)


def _is_phone(text: str) -> bool:
    digits = sum(char.isdigit() for char in text)
    return 7 <= digits <= 15 and not re.fullmatch(r"[0-9]{4}[-.][0-9]{2}[-.][0-9]{2}.*", text)


def _is_secret(text: str) -> bool:
    return text.strip().lower() not in _NO_SECRET and not re.fullmatch(r"[*•x.]+", text, re.IGNORECASE)


def _is_password(text: str) -> bool:
    """For a bare word after a colon: prose follows colons too, so it must look unlike a word."""
    return _is_secret(text) and len(text) >= 6 and bool(re.search(r"[0-9!@#$%^*_+=]", text))


def _shape(
    kind: str,
    template: str,
    *hints: str,
    gate: str | None = None,
    only: Callable[[str], bool] | None = None,
    part: Callable[[str], str] | None = None,
) -> Shape:
    regex = re.sub(r"\{([A-Z_]+)\}", lambda word: _WORDS[word[1]], template)
    if only is not None:
        part = lambda value: value if only(value) else ""  # noqa: E731
    return Shape(kind, re.compile(regex, re.VERBOSE), hints, re.compile(gate) if gate else None, part)


_NAMED = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential"),
    *("_key", "-key", "apikey", "accesskey", "privatekey", "signingkey", "encryptionkey"),
    *("_token", "-token", "authtoken", "accesstoken", "refreshtoken", "sessiontoken", "securitytoken"),
    *("bearertoken", "apitoken", "idtoken"),
)

SHAPES: tuple[Shape, ...] = (
    _shape(
        "secret",
        r"""-----BEGIN[ ](?:[A-Z0-9]+[ ])*PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
        (?:(?!-----END){FREE}[\s\S])*(?:-----END[ ][A-Z0-9 ]+-----)?""",
        "private key",
    ),
    _shape(
        "secret",
        r"""{START}(?:sk-(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9_-]{16,}  # OpenAI, Anthropic, OpenRouter
        |[srp]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}  # Stripe
        |gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}
        |xox[abeprs]-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}
        |hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{20,}
        |SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|(?:gsk_|xai-|pplx-)[A-Za-z0-9]{30,}
        |shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|AGE-SECRET-KEY-1[A-Z0-9]{50,}
        |eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)  # JSON web token""",
        *("sk-", "k_live_", "k_test_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
        *("xox", "akia", "asia", "aiza", "ya29.", "hf_", "npm_", "pypi-", "dckr_pat_", "sg.", "gsk_", "xai-"),
        *("pplx-", "shpat_", "shpca_", "shppa_", "shpss_", "age-secret-key-", "eyj"),
    ),
    _shape(
        "secret",
        r"(?i:bearer|basic)\s+(?P<value>(?=[A-Za-z]*[0-9+/=._-])[A-Za-z0-9._~+/=-]{12,})",
        *("bearer", "basic"),
    ),
    _shape("secret", r"""(?<=://)[^\s/:@"'<>\\]*:(?P<value>[^\s/@"'<>\\]+)(?=@)""", "://"),
    # Assignments: the value in quotes, in single quotes, in escaped quotes (JSON in JSON), or bare.
    _shape(
        "secret",
        r"""{SECRET_NAME}["']?\s*(?::|=>?)\s*"(?P<value>(?:{FREE}(?:[^"\\\r\n]|\\.)){3,}?)(?=")""",
        *_NAMED,
        only=_is_secret,
    ),
    _shape(
        "secret",
        r"""{SECRET_NAME}'?\s*(?::|=>?)\s*'(?P<value>(?:{FREE}[^'\\\r\n]){3,})(?=')""",
        *_NAMED,
        only=_is_secret,
    ),
    _shape(
        "secret",
        r"""{SECRET_NAME}\\+"\s*:\s*\\+"(?P<value>(?:{FREE}[^"\\\r\n]){3,})(?=\\+")""",
        *_NAMED,
        only=_is_secret,
    ),
    _shape(
        "secret",
        r"""{SECRET_NAME}\s*=\s*(?P<value>(?![\[{(])(?:{FREE}[^\s"'\\,;&|<>)}\]]){4,})""",
        *_NAMED,
        only=_is_secret,
    ),
    _shape(
        "secret",
        r"""{SECRET_NAME}\s*:\s*(?P<value>(?![\[{(])(?:{FREE}[^\s"'\\,;&|<>)}\]]){4,})""",
        *_NAMED,
        only=_is_password,
    ),
    _shape("secret", r"""{SECRET_NAME}"\s*:\s*(?P<value>[1-9][0-9]{3,})(?=\s*[,}])""", *_NAMED),
    _shape(
        "email",
        r"""{START}[{LETTER}][{LETTER}.%+-]{0,63}@
        (?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}(?![A-Za-z0-9-])""",
        "@",
    ),
    _shape(
        "iban",
        r"{START}[A-Z]{2}[0-9]{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?{END}",
        gate=r"[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4}",
        part=_iban,
    ),
    _shape(
        "card",
        r"""{START}(?<![.-])(?:[2-6][0-9]{12,18}
        |[2-6][0-9]{3}(?P<gap>[ -])(?:[0-9]{4}(?P=gap)[0-9]{4}(?P=gap)[0-9]{4}|[0-9]{6}(?P=gap)[0-9]{4,5}))
        {END}(?![.-][0-9])""",
        gate=r"[0-9](?:[ -]?[0-9]){12}",
        only=is_card,
    ),
    _shape(
        "ssn",
        r"{START}(?<![.-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}{END}(?!-)",
        gate=r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
    ),
    _shape(
        "ip",
        r"{START}(?<![.-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}{END}(?!\.[0-9])",
        gate=r"[0-9]\.[0-9]{1,3}\.[0-9]",
        only=_is_address,
    ),
    _shape(
        "ip",
        r"{START}(?<![:.])(?:[0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{0,4}{END}(?!:)",
        gate=r":[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:",
        only=_is_address,
    ),
    _shape(
        "phone",
        r"""{PHONE_NAME}\.?\\{0,8}["']?\s{0,4}[:=]?\s{0,4}(?i:is\s{1,4})?\\{0,8}["']?
        (?P<value>[+(]?[0-9][0-9 ().-]{5,18}[0-9]){END}""",
        *("phone", "mobile", "fax", "tel"),
        only=_is_phone,
    ),
    _shape(
        "phone",
        r"電話(?:番号)?\s{0,4}[:：は]?\s{0,4}(?P<value>[+(]?[0-9][0-9 ().-]{5,18}[0-9])(?![0-9])",
        "電話",
        only=_is_phone,
    ),
    _shape("phone", r"{START}\+[1-9](?:[ .()-]{0,2}[0-9]){7,14}{END}", gate=r"\+[1-9]"),
    _shape(
        "phone",
        r"""{START}(?<![.+-])(?:1[ .-])?(?:\([2-9][0-9]{2}\)[ ]?[2-9][0-9]{2}[ .-]
        |[2-9][0-9]{2}(?P<dash>[.-])[2-9][0-9]{2}(?P=dash))[0-9]{4}{END}(?![.-][0-9])""",
        gate=r"[0-9]{3}(?:\) ?|[.-])[0-9]{3}[ .-][0-9]{4}",
    ),
    # Japan and the United Kingdom write a leading zero, France writes pairs.
    _shape(
        "phone",
        r"""{START}(?<![.+-])(?=0(?:[ -]?[0-9]){9,10}{END})(?:0[0-9]{1,4}-[0-9]{1,4}-[0-9]{3,4}
        |0[0-9]{2,4}[ ][0-9]{3,4}[ ]?[0-9]{3,4}|0[1-9](?:[ -][0-9]{2}){4}){END}(?![.-][0-9])""",
        gate=r"0[0-9 -]{9}",
    ),
)
"""In the order in which they are looked for."""
