"""The sample: a world with tasks, a simulated agent, its server, and a finished evaluation made of them.

Everything here is made up and says so. Results of the simulated agent are no
evidence for any real model.
"""

from poc.sample.files import data_dir
from poc.sample.server import ServerOptions, running_server, serve
from poc.sample.workspace import ensure_sample, is_sample
from poc.sample.world import World

__all__ = ["ServerOptions", "World", "data_dir", "ensure_sample", "is_sample", "running_server", "serve"]
