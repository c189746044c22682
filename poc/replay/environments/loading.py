"""Finds the class or function that a target names: ``module:Name`` or ``path/to/file.py:Name``.

The code is the user's own and runs with the user's rights; nothing from a log
ever becomes a target. Knows no contract.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from poc.errors import InputError, did_you_mean


def absolute_target(target: str) -> str:
    """The same target with the file's whole path, so that another process finds it from anywhere."""
    place, name = _split(target)
    return f"{Path(place).expanduser().resolve()}:{name}" if _is_file(place) else target


def load_target(target: str) -> Callable[[], Any]:
    """The class or function named by `target`.

    Raises `InputError`: no such file, module or name; the module fails when
    it is loaded (with the file and line).
    """
    place, name = _split(target)
    module = _from_file(Path(place).expanduser()) if _is_file(place) else _from_module(place)
    found = getattr(module, name, None)
    if found is None:
        known = [key for key, value in vars(module).items() if isinstance(value, type) and not key.startswith("_")]
        raise InputError(f"There is no '{name}' in {place}.{did_you_mean(name, known)}", where=target)
    if not callable(found):
        raise InputError(f"'{name}' in {place} is no class and no function.", where=target)
    return found


def _split(target: str) -> tuple[str, str]:
    place, _, name = target.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError(
            f"'{target}' does not name an environment.",
            todo="Write module:Class, or path/to/file.py:Class.",
        )
    return place, name


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or "\\" in place


def _from_file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise InputError("There is no such file.", where=str(path), todo="Check the path of the environment.")
    name = f"poc_environment_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    _findable(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("This file cannot be loaded as Python.", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise _failed(str(path), error) from error
    return module


def _from_module(name: str) -> ModuleType:
    _findable(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"There is no module '{name}'.",
                where=name,
                todo="Check its name and that it is installed, or give the path of the file: path/to/file.py:Class.",
            ) from error
        raise _failed(name, error) from error
    except Exception as error:
        raise _failed(name, error) from error


def _findable(folder: Path) -> None:
    # At the end of the path: the user's folder must not hide an installed package.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _failed(place: str, error: Exception) -> InputError:
    if isinstance(error, SyntaxError):
        where = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else place
    return InputError(
        f"The environment's module fails when it is loaded: {type(error).__name__}: {error}",
        where=where,
        todo="Mend the module, then try again.",
    )
