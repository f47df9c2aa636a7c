"""package_test.py BUILD [LIBRARY:...] -- writes the wheel of a build, installs it into a virtual environment
and tests it there: package_cases.py, the tutorial notebook, and installations that are broken.

LIBRARIES are preloaded into Python: the runtime of the sanitizers that libweft.so was built with.
Exits with 77 if the venv module of Python is not installed.
"""

import ast
import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))

try:
    import ensurepip  # noqa: F401 -- Debian has it in python3-venv
    import venv  # noqa: F401
except ImportError:
    print("skipped: Python's venv module is not installed (python3-venv)")
    sys.exit(77)

sys.path.insert(0, os.path.join(SOURCE, "python"))
sys.dont_write_bytecode = True
import weft_wheel  # noqa: E402


def check(what, expected, found):
    if expected != found:
        sys.exit(f"FAILED: {what}: expected {expected!r}, found {found!r}")
    print(f"ok: {what}", flush=True)


def check_contains(what, expected, found):
    if expected not in found:
        sys.exit(f"FAILED: {what}: expected a text with {expected!r}, found {found!r}")
    print(f"ok: {what}", flush=True)


def record_is_right(path):
    """Every file of the wheel is in RECORD with its hash and size."""
    with zipfile.ZipFile(path) as wheel:
        record = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")][0]
        listed = {}
        for line in wheel.read(record).decode().splitlines():
            name, digest, size = line.rsplit(",", 2)
            listed[name] = (digest, size)
        found = {record: ("", "")}
        for name in wheel.namelist():
            if name == record:
                continue
            content = wheel.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            found[name] = ("sha256=" + digest, str(len(content)))
        return listed == found


class Environment:
    """A virtual environment. It sees NumPy and pandas of the system, and no weft of the source tree."""

    def __init__(self, folder, preload):
        self.folder, self.preload = folder, preload
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder], check=True)
        self.python = os.path.join(folder, "bin", "python")
        asked = self.run(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        self.packages = asked.stdout.strip()

    def run(self, arguments, preload=False):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("PYTHONPATH", "WEFT_LIBRARY", "LD_PRELOAD", "WEFT_RANK_PROGRAM")}
        environment.update(WEFT_SOURCE=SOURCE, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_CACHE_DIR="1")
        if preload and self.preload:
            environment["LD_PRELOAD"] = self.preload.replace(":", " ")
            # What Python never frees is not a leak of the library.
            options = [environment["ASAN_OPTIONS"]] if "ASAN_OPTIONS" in environment else []
            environment["ASAN_OPTIONS"] = ":".join(options + ["detect_leaks=0"])
        return subprocess.run([self.python, *arguments], cwd=self.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def pip(self, *arguments):
        return self.run(["-m", "pip", *arguments])

    def installed(self):
        return sorted(name for name in os.listdir(self.packages) if name.startswith("weft"))


def run_inside(environment, what, *arguments):
    done = environment.run(arguments, preload=True)
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {what}:\n{done.stderr}")


def broken_installations(environment):
    """Each is an ImportError with a hint, and no half-working module."""
    def failure():
        asked = environment.run(["-c", "import weft"], preload=True)
        check("a broken installation fails", 1, asked.returncode)
        return asked.stderr

    package = os.path.join(environment.packages, "weft")
    library, about = os.path.join(package, "lib", "libweft.so.0"), os.path.join(package, "_wheel.json")
    os.rename(library, library + ".away")
    text = failure()
    check_contains("a missing library", f"ImportError: the weft package lacks {library}", text)
    check_contains("and its hint", "install the wheel again", text)
    with open(library, "wb") as file:
        file.write(b"\x7fELF of another machine")
    text = failure()
    check_contains("a library of another machine", f"ImportError: cannot load {library}: ", text)
    os.rename(library + ".away", library)
    with open(about, encoding="utf-8") as file:
        made = json.load(file)
    for key, value, expected in (("platform", "linux_sparc64", "ImportError: this weft wheel is for linux_sparc64, and"),
                                 ("version", "0.0.1", f"has version {made['version']}, and the package 0.0.1")):
        with open(about, "w", encoding="utf-8") as file:
            json.dump({**made, key: value}, file)
        check_contains(f"a wrong {key}", expected, failure())
    with open(about, "w", encoding="utf-8") as file:
        json.dump(made, file)


def is_for_python_3_8():
    """The sources parse as Python 3.8, the oldest version that the wheel is for."""
    package = os.path.join(SOURCE, "python", "weft")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            with open(os.path.join(package, name), encoding="utf-8") as file:
                ast.parse(file.read(), name, feature_version=(3, 8))
    return True


def main():
    build, preload = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "")
    for library in filter(None, preload.split(":")):
        if not os.path.isabs(library):
            print(f"skipped: the compiler does not find {library}, which a sanitized library needs")
            sys.exit(77)
    check("Python 3.8 can parse the package", True, is_for_python_3_8())
    with tempfile.TemporaryDirectory() as folder:
        path = weft_wheel.write_wheel(build, folder, compress=False)
        check("the name of the wheel", f"weft-{weft_wheel.version_of_project()}-py3-none-{weft_wheel.this_platform()}.whl",
              os.path.basename(path))
        check("RECORD", True, record_is_right(path))
        check("files beside the wheel", [os.path.basename(path)], os.listdir(folder))
        try:
            weft_wheel.write_wheel(os.path.join(folder, "nothing"), folder)
        except weft_wheel.WheelError as error:
            check_contains("a build without the library", "libweft.so is not built: make lib builds it", str(error))
        else:
            sys.exit("FAILED: a wheel of nothing")
        check("an unfinished wheel is removed", [os.path.basename(path)], os.listdir(folder))

        environment = Environment(os.path.join(folder, "venv"), preload)
        other = path.replace(weft_wheel.this_platform(), "win_amd64")
        os.link(path, other)
        done = environment.pip("install", "--no-index", "--no-deps", other)
        check_contains("a wheel for another platform", "is not a supported wheel on this platform", done.stderr)
        check("nothing of it is installed", [], environment.installed())
        os.unlink(other)
        done = environment.pip("install", "--no-index", "--no-deps", path)
        check("pip install" + done.stderr, 0, done.returncode)

        run_inside(environment, "package_cases.py", os.path.join(HERE, "package_cases.py"))
        run_inside(environment, "the tutorial", os.path.join(HERE, "run_notebook.py"),
                   os.path.join(SOURCE, "examples", "python", "tutorial.ipynb"))
        broken_installations(environment)
        done = environment.pip("uninstall", "--yes", "weft")
        check("pip uninstall", 0, done.returncode)
        check("nothing is left", [], environment.installed())


if __name__ == "__main__":
    main()
