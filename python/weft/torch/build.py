"""Compiles the backend for the installed torch:

    python -m weft.torch.build             into ~/.cache/weft/torch
    python -m weft.torch.build --to DIR    into DIR; WEFT_TORCH_EXTENSION=DIR makes weft.torch load it

It needs a C++ compiler (CXX, or c++) and Python's headers, but neither ninja nor setuptools. The files
appear in the folder when all of them are complete, so a failed build leaves nothing behind.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import List


class BuildError(Exception):
    pass


def _need_torch():
    if importlib.util.find_spec("torch") is None:
        raise BuildError("torch is not installed in this Python\n  "
                         f"{sys.executable} -m pip install torch, or run another python")
    from . import _extension

    version = _extension.torch_version()
    if version < _extension.OLDEST:
        raise BuildError(f"expected torch {'.'.join(map(str, _extension.OLDEST))} or later, found "
                         f"{_extension.torch.__version__}\n  install a later torch")
    if not _extension.torch.distributed.is_available():
        raise BuildError(f"torch {_extension.torch.__version__} was built without torch.distributed\n  "
                         "install a build of torch that has it")
    return _extension


def _compiler() -> List[str]:
    named = shlex.split(os.environ.get("CXX", ""))
    for words in [named] if named else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(words[0]):
            return words
    looked = named[0] if named else "c++, g++ and clang++"
    raise BuildError(f"no C++ compiler: looked for {looked}\n  install g++ (apt-get install g++), or name one in CXX")


def _include_folders(extension) -> List[str]:
    torch_folder = os.path.dirname(os.path.abspath(extension.torch.__file__))
    base = os.path.join(torch_folder, "include")
    needed = os.path.join("torch", "csrc", "distributed", "c10d", "Work.hpp")
    if not os.path.exists(os.path.join(base, needed)):
        raise BuildError(f"torch {extension.torch.__version__} has no C++ headers: expected {os.path.join(base, needed)}\n"
                         "  install them (Debian: apt-get install libtorch-dev), or torch from PyPI")
    python = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(python, "Python.h")):
        raise BuildError(f"Python has no C headers: expected {os.path.join(python, 'Python.h')}\n"
                         "  install them (apt-get install python3-dev)")
    folders = [extension.weft_header(), extension.HERE, base, os.path.join(base, "torch", "csrc", "api", "include"), python]
    if not os.path.exists(os.path.join(base, "pybind11", "pybind11.h")) and not os.path.exists("/usr/include/pybind11"):
        raise BuildError(f"pybind11 is missing: expected {os.path.join(base, 'pybind11')}\n"
                         "  install it (Debian: apt-get install pybind11-dev)")
    return folders


def _cpp_runtime() -> List[str]:
    """The C++ library that torch has loaded into this process.

    Some compilers link their own copy of it into the extension. Two copies in one process do not share
    exceptions and locales: an error that passes from one to the other ends the process.
    """
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = {line.split(None, 5)[-1].rstrip("\n") for line in maps if "/" in line}
    names = ("libstdc++.so.6", "libgcc_s.so.1")
    return sorted(path for path in loaded if os.path.basename(path).startswith(names) and os.path.exists(path))


def _check_runtime(path: str, compiler: str) -> None:
    with open(path, "rb") as file:
        if _cpp_runtime() and b"libstdc++.so" not in file.read():
            raise BuildError(f"{compiler} linked its own copy of the C++ library into the backend: expected libstdc++.so, "
                             "which torch uses\n  name another compiler in CXX")


def command(extension, output: str) -> List[str]:
    """The call of the compiler."""
    torch = extension.torch
    # Headers of later versions need C++20.
    standard = "c++20" if extension.torch_version() >= (2, 10) else "c++17"
    words = _compiler() + ["-shared", "-fPIC", "-O2", "-std=" + standard, "-fvisibility=hidden", "-w"]
    words += [f"-DTORCH_EXTENSION_NAME={extension.NAME}", "-DTORCH_API_INCLUDE_EXTENSION_H",
              f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    # pybind11 shares its types only among modules with equal tags.
    for tag in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{tag}", None)
        if value is not None:
            words.append(f'-DPYBIND11_{tag}="{value}"')
    for folder in _include_folders(extension):
        words += ["-isystem" if folder != extension.HERE else "-I", folder]
    libraries = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "lib")
    words += [extension.SOURCE, "-o", output, "-L" + libraries, "-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10"]
    words += _cpp_runtime() + ["-ldl"]
    return words


def _first_errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line or "cannot find" in line]
    return "\n".join("  " + line for line in (lines or text.splitlines())[:20])


def build(to: str = "", verbose: bool = False) -> str:
    """Compiles the backend and returns the path of the file."""
    extension = _need_torch()
    folder = os.path.abspath(to) if to else extension.default_folder()
    parent = os.path.dirname(folder)
    try:
        os.makedirs(folder if to else parent, exist_ok=True)
        unfinished = tempfile.mkdtemp(prefix=".unfinished-", dir=folder if to else parent)
    except OSError as error:
        raise BuildError(f"cannot write to {folder}: {error.strerror}\n  --to names another folder") from None
    try:
        made = extension.file_of(unfinished)
        words = command(extension, made)
        if verbose:
            print(" ".join(shlex.quote(word) for word in words), flush=True)
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        if done.returncode != 0:
            raise BuildError(f"the backend does not compile against torch {extension.torch.__version__} with "
                             f"{words[0]} (exit code {done.returncode}):\n{_first_errors(done.stdout)}\n"
                             "  --verbose prints the command")
        _check_runtime(made, words[0])
        with open(extension.description_of(unfinished), "w", encoding="utf-8") as file:
            file.write(extension.json_of(extension.identity()))
        os.makedirs(folder, exist_ok=True)
        # The description last: without it the file is not loaded.
        for path in (made, extension.description_of(unfinished)):
            os.replace(path, os.path.join(folder, os.path.basename(path)))
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return extension.file_of(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m weft.torch.build",
                                     description="compiles the c10d backend \"weft\" for the installed torch")
    parser.add_argument("--to", default="", help="folder for the files (a folder of ~/.cache/weft/torch)")
    parser.add_argument("--verbose", action="store_true", help="print the compiler's command")
    asked = parser.parse_args()
    try:
        print(build(asked.to, asked.verbose))
    except (BuildError, ImportError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
