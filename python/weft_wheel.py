"""Writes the wheel: the package, the sources of weft.torch, libweft.so, the weft program and the MPI plugins.

    python3 weft_wheel.py --build ../build/release --out ../build/release

prints the path of the wheel. It is also the build backend of pyproject.toml, so `pip wheel .` works
after `make lib`. The tag is py3-none-<platform>: one wheel for every Python from 3.8 on. Libraries whose
names differ between distributions lie beside libweft.so. It is not a manylinux wheel, since it needs the
C library of the distribution that it was built on, or a newer one; _wheel.json in the package lists what
else it needs.
"""

import argparse
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
COMM_HEADER = os.path.join(ROOT, "src", "weft", "communication", "comm", "weft_comm.h")
SUMMARY = "A query planner for distributed deep learning"
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal contents give equal wheels


# Libraries with the same name and interface on current distributions, which other modules of a process use,
# too: a second copy would replace theirs.
COMMON = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|crypto|z|sqlite3|tinfo|asan|ubsan))\.so")


class WheelError(Exception):
    pass


def version_of_project():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        found = re.search(r"^project\(weft VERSION ([0-9.]+)", file.read(), re.MULTILINE)
    if not found:
        raise WheelError("CMakeLists.txt: expected project(weft VERSION ...)")
    return found.group(1)


def system_name():
    """The distribution, such as "Debian GNU/Linux 12 (bookworm)"."""
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            found = re.search(r'^PRETTY_NAME="?([^"\n]*)', file.read(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1) if found else ""


def this_platform():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def needed_libraries(path):
    """The shared libraries that a file names; empty without readelf."""
    tool = shutil.which("readelf")
    if tool is None:
        return []
    listing = subprocess.run([tool, "-d", path], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    return sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", listing))


def libraries_of(*paths):
    """The files of the libraries that these and one another need, by name, without the common ones."""
    tool = shutil.which("ldd")
    found = {}
    for path in paths if tool else ():
        listing = subprocess.run([tool, path], stdout=subprocess.PIPE, universal_newlines=True).stdout
        for name, file in re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE):
            if not COMMON.match(name):
                found[name] = os.path.realpath(file)
    return found


def without_debug(path, folder):
    """A copy without debug information; the file itself without strip."""
    tool = shutil.which("strip")
    if tool is None:
        return path
    made = os.path.join(folder, os.path.basename(path))
    done = subprocess.run([tool, "--strip-debug", "-o", made, path], stderr=subprocess.PIPE)
    return made if done.returncode == 0 else path


class Wheel:
    """A zip file and its RECORD."""

    def __init__(self, path, dist_info, compress):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED)
        self.dist_info, self.record = dist_info, []

    def add(self, name, content, executable=False):
        info = zipfile.ZipInfo(name, FIRST_DATE)
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = self.zip.compression
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(content)))

    def add_file(self, name, path, executable=False):
        with open(path, "rb") as file:
            self.add(name, file.read(), executable)

    def close(self):
        record = self.dist_info + "/RECORD"
        self.add(record, ("\n".join(self.record) + "\n%s,,\n" % record).encode())
        self.record.pop()
        self.zip.close()


def write_wheel(build, out, platform=None, compress=True, version=None):
    """Writes the wheel of a build folder and returns its path. Leaves no file if it fails."""
    if not sys.platform.startswith("linux"):
        raise WheelError("weft runs on Linux, and this is " + sys.platform)
    version = version or version_of_project()
    platform = platform or this_platform()
    library, program = os.path.join(build, "libweft.so"), os.path.join(build, "weft")
    for path, target in ((library, "make lib"), (program, "make")):
        if not os.path.exists(path):
            raise WheelError("%s is not built: %s builds it" % (os.path.normpath(path), target))
    name = "weft-%s-py3-none-%s.whl" % (version, platform)
    dist_info = "weft-%s.dist-info" % version
    os.makedirs(out, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(suffix=".unfinished", dir=out)
    os.close(handle)
    try:
        with tempfile.TemporaryDirectory() as folder:
            wheel = Wheel(unfinished, dist_info, compress)
            package = os.path.join(HERE, "weft")
            for parent, folders, files in sorted(os.walk(package)):
                folders[:] = [one for one in folders if one != "__pycache__"]
                place = os.path.join("weft", os.path.relpath(parent, package))
                for file in sorted(files):
                    if file.endswith((".py", ".pyi", ".cpp", ".h")) or file == "py.typed":
                        wheel.add_file(os.path.normpath(os.path.join(place, file)), os.path.join(parent, file))
            wheel.add_file("weft/torch/weft_comm.h", COMM_HEADER)
            wheel.add_file("weft/lib/libweft.so.0", without_debug(os.path.realpath(library), folder), True)
            wheel.add_file("weft/bin/weft", without_debug(program, folder), True)
            for plugin in sorted(glob.glob(os.path.join(build, "weft_mpi_*.so"))):
                wheel.add_file("weft/lib/weft/" + os.path.basename(plugin), plugin, True)
            beside = libraries_of(library, program)
            for file in sorted(beside):
                wheel.add_file("weft/lib/" + file, beside[file], True)
            needs = sorted((set(needed_libraries(library)) | set(needed_libraries(program))) - set(beside))
            wheel.add("weft/_wheel.json", json.dumps({"version": version, "platform": platform,
                                                      "system": system_name(), "needs": needs}, indent=1).encode())
            wheel.add(dist_info + "/METADATA", metadata(version).encode())
            wheel.add(dist_info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: weft_wheel (%s)\n"
                                             "Root-Is-Purelib: false\nTag: py3-none-%s\n" % (version, platform)).encode())
            wheel.add(dist_info + "/entry_points.txt", b"[console_scripts]\nweft = weft.__main__:main\n")
            wheel.add_file(dist_info + "/LICENSE", os.path.join(ROOT, "LICENSE"))
            wheel.close()
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, os.path.join(out, name))
    except BaseException:
        os.unlink(unfinished)
        raise
    return os.path.join(out, name)


def metadata(version):
    return ("Metadata-Version: 2.1\nName: weft\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.8\nDescription-Content-Type: text/plain\n\n"
            "Plans of models on clusters, predicted step times and memory, training.\n" % (version, SUMMARY))


# The hooks of PEP 517.


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = os.environ.get("WEFT_BUILD", os.path.join(ROOT, "build", "release"))
    try:
        return os.path.basename(write_wheel(build, wheel_directory))
    except WheelError as error:
        sys.exit("error: %s" % error)


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("error: Weft has no source distribution for Python\n  make wheel builds a wheel in the source tree")


def main():
    parser = argparse.ArgumentParser(description="writes Weft's wheel for Python")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="folder of libweft.so and weft")
    parser.add_argument("--out", default=".", help="folder of the wheel")
    parser.add_argument("--platform", help="platform of the tag (this one)")
    parser.add_argument("--store", action="store_true", help="do not compress")
    asked = parser.parse_args()
    try:
        print(write_wheel(asked.build, asked.out, asked.platform, not asked.store))
    except WheelError as error:
        sys.exit("error: %s" % error)


if __name__ == "__main__":
    main()
