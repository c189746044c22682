"""Which model is asked, and how: the part of a frozen plan that the client needs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ModelSettings(BaseModel):
    """Which model is asked, and how. Keys are never here: they come from the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    base_url: str | None = None
    """None: OpenAI's own."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    temperature: float | None = None
    max_output_tokens: int = Field(default=1024, gt=0)
    send_seed: bool = True
    timeout_s: float = Field(default=60.0, gt=0)
    max_retries: int = Field(default=4, ge=0)
