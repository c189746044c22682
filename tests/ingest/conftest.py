import json

import pytest


@pytest.fixture
def shared_log(real_logs):
    def find(name):
        path = real_logs / name
        if not path.exists():
            pytest.skip(f"the real log {name} is not on this machine")
        return path

    return find


@pytest.fixture
def write(tmp_path):
    """Write a file: bytes as they are, text, or a list of values as JSON lines."""

    def put(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="")
        else:
            path.write_text("".join(json.dumps(value) + "\n" for value in content), encoding="utf-8")
        return path

    return put
