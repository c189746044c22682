"""What answers tool calls in a replay: the contract, and one module for each kind of environment."""

from poc.replay.environments.base import Environment, EnvironmentTask, ToolResult

__all__ = ["Environment", "EnvironmentTask", "ToolResult"]
