#!/usr/bin/env bash
# setup.sh PURPOSE... -- installs the packages that are missing for build, test, wheel, bench, format
# or lint.
#
# Uses apt, with sudo if not root, on Debian 12, Ubuntu 24.04 and similar. Other systems get a list
# of the requirements. If nothing is missing, it only runs dpkg-query once.
set -euo pipefail
cd "$(dirname "$0")/.."

# The package of the libFuzzer runtime is named after the distribution's version of clang.
clang_version() {
  local ID= VERSION_ID=
  [[ -r /etc/os-release ]] && . /etc/os-release
  case $ID:$VERSION_ID in
    debian:12) echo 14 ;;
    debian:13) echo 19 ;;
    ubuntu:24.04) echo 18 ;;
    *) apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1 ;;
  esac
}

# purpose, must (required) or may (optional), package, common name, what it is for
packages() {
  cat <<END
build must g++                           g++ 12 or later         the C++20 compiler
build must cmake                         CMake 3.25 or later     configures the build
build must ninja-build                   Ninja                   runs the build
build must pkg-config                    pkg-config              finds libedit
build must libfmt-dev                    fmt                     writes text
build must nlohmann-json3-dev            nlohmann-json           writes JSON
build must libcli11-dev                  CLI11                   reads the command line
build must zlib1g-dev                    zlib                    reads .gz data
build must libpugixml-dev                pugixml                 reads MSCCL programs and NCCL topologies
build must libyaml-cpp-dev               yaml-cpp                reads configurations of NeMo, Accelerate and MaxText
build must libutf8proc-dev               utf8proc                Unicode properties and forms for tokenizers
build may  libopenblas-dev               OpenBLAS                matrix products
build may  libsqlite3-dev                SQLite                  keeps what was measured
build may  libcadical-dev                CaDiCaL                 step-optimal collective algorithms
build may  libssl-dev                    OpenSSL 3               encrypts TCP: WEFT_SECURE=1
build may  libedit-dev                   libedit                 editing and history at the prompt
build may  libtomlplusplus-dev           toml++                  reads torchtitan's job.toml
build may  libonnx-dev                   ONNX                    reads ONNX files
build may  libprotobuf-dev               protobuf                reads ONNX files
build may  ccache                        ccache                  faster second builds
build may  mold                          mold                    faster linking
test  must libgtest-dev                  GoogleTest              unit tests
test  must librapidcheck-dev             RapidCheck              property tests
test  may  clang                         clang                   fuzzing with libFuzzer
test  may  libclang-rt-$(clang_version)-dev  compiler-rt of clang    fuzzing with libFuzzer
test  may  libopenmpi-dev                Open MPI                the mpi transport over Open MPI
test  may  openmpi-bin                   Open MPI's mpirun       tests of the mpi transport
test  may  libmpich-dev                  MPICH                   the mpi transport over MPICH
test  may  mpich                         MPICH's mpiexec         tests of the mpi transport
test  may  iproute2                      ip and tc               tests across hosts (network namespaces)
test  may  python3-venv                  Python's venv           tests of the wheel for Python
test  may  python3-numpy                 NumPy                   tests of arrays in Python
wheel must python3                       Python 3.8 or later     writes the wheel
wheel may  binutils                      strip and readelf       a smaller wheel
bench may  libopenmpi-dev                Open MPI                what collectives are measured against
bench may  openmpi-bin                   Open MPI's mpirun       what collectives are measured against
bench may  libmpich-dev                  MPICH                   what collectives are measured against
bench may  mpich                         MPICH's mpiexec         what collectives are measured against
bench may  libgloo-dev                   Gloo                    what collectives are measured against
bench may  python3-torch                 PyTorch                 what training is measured against
format must clang-format                 clang-format            the layout of the sources
lint  must nodejs                        Node.js 18.18 or later  checks the scripts of web/
lint  must npm                           npm                     fetches eslint, for this alone
END
}

wanted=$(packages | awk -v purposes=" $* " 'index(purposes, " " $1 " ")')
[[ -n $wanted ]] || exit 0

# describe PACKAGE... -- prints one line per package, such as "  libfmt-dev (fmt: writes text)".
describe() {
  local package
  for package in "$@"; do
    awk -v package="$package" '$3 == package {
      line = substr($0, index($0, $3) + length($3)); sub(/^ +/, "", line); sub(/  +/, ": ", line)
      printf "  %s (%s)\n", package, line
    }' <<<"$wanted"
  done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  tools_missing=()
  for tool in g++ cmake ninja; do
    command -v "$tool" >/dev/null || tools_missing+=("$tool")
  done
  if ((${#tools_missing[@]} > 0)) || [[ ! -d build ]]; then
    echo "setup: no apt on this system; Weft is built with:" >&2
    awk '{ line = substr($0, index($0, $3) + length($3)); sub(/^ +/, "", line); sub(/  +/, ": ", line)
      print "  " line }' <<<"$wanted" >&2
  fi
  if ((${#tools_missing[@]} > 0)); then
    echo "setup: not found: ${tools_missing[*]}" >&2
    exit 1
  fi
  exit 0  # CMake will name a library that is missing
fi

# missing NECESSITY -- the packages of that kind that are not installed. Leaves out
# libclang-rt--dev, the name that results on an unknown release.
missing() {
  local names
  names=$(awk -v necessity="$1" '$2 == necessity && $3 !~ /--/ { print $3 }' <<<"$wanted")
  comm -23 <(sort <<<"$names") <(sort <<<"$installed") | xargs
}

list_installed() {
  # shellcheck disable=SC2046
  dpkg-query -W -f '${Package} ${db:Status-Status}\n' $(awk '{ print $3 }' <<<"$wanted") 2>/dev/null |
    awk '$2 == "installed" { print $1 }' || true
}

installed=$(list_installed)
read -r -a must <<<"$(missing must)"
read -r -a may <<<"$(missing may)"
((${#must[@]} + ${#may[@]} > 0)) || exit 0

# Packages that the release does not offer are tried once, not on every make.
declined=build/.setup-declined
if ((${#must[@]} == 0)) && [[ -e $declined && ! $0 -nt $declined ]]; then
  for package in "${may[@]}"; do
    grep -qx "$package" "$declined" || { rm -f "$declined"; break; }
  done
  [[ ! -e $declined ]] || exit 0
fi

as_root=()
if ((EUID != 0)); then
  as_root=(sudo)
  # Without a terminal, fail at once instead of waiting for a password.
  [[ -t 0 ]] || as_root=(sudo -n)
fi

# Another package manager, such as the automatic upgrades after a boot, may hold a lock: wait for
# it. apt itself waits for only one of the locks, and prints messages meanwhile.
wait_seconds=${SETUP_WAIT_SECONDS:-600}
apt() {
  local out code held waited=0
  out=$(mktemp)
  while :; do
    code=0
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y \
      -o Dpkg::Use-Pty=0 -o APT::Install-Recommends=false "$@" </dev/null >"$out" 2>&1 || code=$?
    held=$(grep -m 1 -E 'Could not get lock|Unable to acquire the dpkg|is another process using it' "$out" || true)
    if ((code == 0)) || [[ -z $held ]] || ((waited >= wait_seconds)); then break; fi
    ((waited > 0)) || echo "setup: waiting up to $wait_seconds s for another package manager: ${held#E: }" >&2
    sleep 3
    waited=$((waited + 3))
  done
  cat "$out" >>"$log"
  rm -f "$out"
  return "$code"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: installing" "${must[@]}" "${may[@]}" >&2
if ((EUID != 0)) && ! command -v sudo >/dev/null; then
  echo "setup: not root and no sudo" >"$log"
else
  apt update || true
  # Installing all at once is faster; one by one shows which packages fail.
  if ! apt install "${must[@]}" "${may[@]}"; then
    for package in "${must[@]}" "${may[@]}"; do
      apt install "$package" || true
    done
  fi
fi

before=$installed
installed=$(list_installed)
read -r -a must <<<"$(missing must)"
read -r -a may <<<"$(missing may)"
mkdir -p build
# Earlier CMake runs did not find the new packages: see build.sh.
[[ $installed == "$before" ]] || touch build/.setup-stamp
if ((${#may[@]} > 0)); then
  echo "setup: going on without:" >&2
  describe "${may[@]}" >&2
  printf '%s\n' "${may[@]}" >"$declined"
fi
if ((${#must[@]} > 0)); then
  tail -n 5 "$log" | sed 's/^/  | /' >&2
  echo "setup: these packages are needed and could not be installed:" >&2
  describe "${must[@]}" >&2
  echo "  install them by hand: apt-get install ${must[*]}" >&2
  exit 1
fi
