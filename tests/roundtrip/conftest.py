"""Round trips share one conversation; its checks explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("conversation")
