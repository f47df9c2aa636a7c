"""Runs torch's own distributed_test.py, unchanged, on the backends weft and gloo, and compares.

    python3 test/python/c10d_distributed_test.py                 all tests, both backends
    python3 test/python/c10d_distributed_test.py --list-missing  also each test that passes on gloo only, and why
    python3 test/python/c10d_distributed_test.py --filter send_recv --jobs 4

Tests that pass on gloo and are skipped for weft then run on weft under the name "gloo": torch skips some
tests for other names although the backend supports them. The exit code is 1 if a test that passes on gloo fails on weft (a
skipped test does not count), and 77 if torch or its test files are missing.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

SKIPPED = 77
WORKER = "WEFT_C10D_WORKER"  # "weft", "gloo" or "as gloo": set in processes that run tests
WORLD_SIZE = "3"


def provide_expecttest():
    """torch's test files import this package for comparisons that distributed_test.py does not make."""
    if importlib.util.find_spec("expecttest") is None:
        made = types.ModuleType("expecttest")
        made.TestCase, made.ACCEPT = unittest.TestCase, False
        sys.modules["expecttest"] = made


def rename_weft_to_gloo():
    """Groups that are created with "gloo" use weft, and report "gloo" as their backend."""
    import torch.distributed
    from torch.distributed import distributed_c10d

    def creates(function):
        def created(*positional, **named):
            if named.get("backend") == "gloo":
                named["backend"] = "weft"
            return function(*("weft" if each == "gloo" else each for each in positional), **named)
        return created

    def names(function):
        def named(*positional, **keywords):
            backend = function(*positional, **keywords)
            return "gloo" if backend == "weft" else backend
        return named

    for name, wrap in (("init_process_group", creates), ("new_group", creates), ("get_backend", names)):
        wrapped = wrap(getattr(distributed_c10d, name))
        setattr(distributed_c10d, name, wrapped)
        setattr(torch.distributed, name, wrapped)


def load_tests_of(run_as):
    """Defines the test class of distributed_test.py for a backend."""
    os.environ["BACKEND"] = "gloo" if run_as == "as gloo" else run_as
    provide_expecttest()
    import torch
    import torch.distributed
    from torch.testing._internal import common_distributed

    cases = common_distributed.DistTestCases
    if run_as == "weft":
        for feature in ("gpu", "cuda", "ddp", "subgroup", "plugin"):
            cases.backend_feature.setdefault(feature, set()).add("weft")
    if run_as != "gloo":
        import weft.torch
    if run_as == "as gloo":
        rename_weft_to_gloo()
    torch.set_num_threads(1)
    from torch.testing._internal.distributed import distributed_test

    if run_as == "as gloo":
        find_event = distributed_test.get_profiling_event
        distributed_test.get_profiling_event = lambda postfix, profiler: find_event(
            postfix.replace("gloo:", "weft:"), profiler)

    class TestOnBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            # Forked, not spawned: importing torch takes longer than most tests.
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return TestOnBackend


class Report(unittest.TestResult):
    """Writes one JSON line per test."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def startTest(self, test):
        super().startTest(test)
        self.began = time.time()

    def tell(self, test, outcome, why=""):
        line = {"test": test._testMethodName, "outcome": outcome, "why": why, "seconds": time.time() - self.began}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def addSuccess(self, test):
        self.tell(test, "pass")

    def addSkip(self, test, reason):
        self.tell(test, "skip", reason)

    def addFailure(self, test, error):
        self.tell(test, "fail", self._exc_info_to_string(error, test))

    addError = addFailure


def work(names, out):
    """Runs the tests of these names; the body of a worker process."""
    case = load_tests_of(os.environ[WORKER])
    with open(out, "w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        os.environ["TEMP_DIR"] = folder
        os.makedirs(os.path.join(folder, "barrier"))
        os.makedirs(os.path.join(folder, "test_dir"))
        report = Report(file)
        for name in names:
            case(name).run(report)


def names_of_tests(pattern):
    case = load_tests_of("gloo")
    names = unittest.TestLoader().getTestCaseNames(case)
    return [name for name in names if any(part in name for part in pattern.split(","))]


def run_backend(run_as, names, jobs, limit, folder, slot):
    """Results by name. Tests are dealt to `jobs` processes; those not run within `limit` seconds are "late"."""
    environment = dict(os.environ, **{
        WORKER: run_as, "BACKEND": "gloo" if run_as == "as gloo" else run_as, "WORLD_SIZE": WORLD_SIZE,
        "MASTER_ADDR": "127.0.0.1", "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "100", "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    })
    began, processes = time.time(), []
    for job in range(jobs):
        out = os.path.join(folder, f"{slot}-{job}.jsonl")
        log = open(os.path.join(folder, f"{slot}-{job}.log"), "w", encoding="utf-8")
        command = [sys.executable, os.path.abspath(__file__), "--work", out] + names[job::jobs]
        processes.append((subprocess.Popen(command, env=environment, stdout=log, stderr=log,
                                           start_new_session=True), out, log))
    results = {}
    for process, out, log in processes:
        try:
            process.wait(max(1.0, limit - (time.time() - began)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        log.close()
        if os.path.exists(out):
            with open(out, encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n"):
                        result = json.loads(line)
                        results[result["test"]] = result
        elif process.returncode != 0:
            with open(log.name, encoding="utf-8") as file:
                print(f"{run_as}: a worker ended with exit code {process.returncode}:\n{file.read()[-2000:]}")
    for name in names:
        results.setdefault(name, {"test": name, "outcome": "late", "why": f"not done within {limit:.0f} s", "seconds": 0})
    return results, time.time() - began


def last_line(why):
    """The telling line of a traceback: the first error of a rank, or the last line."""
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("RuntimeError:", "AssertionError:", "ValueError:")) or
              "Error: " in line]
    return (errors[-1] if errors else lines[-1] if lines else "")[:240]


def passed_on_gloo(results):
    return [name for name, each in results["gloo"][0].items() if each["outcome"] == "pass"]


def compare(results, list_missing):
    kinds = ("pass", "skip", "fail", "late")
    print(f"{'backend':10}" + "".join(f"{kind:>8}" for kind in kinds) + f"{'seconds':>10}")
    for run_as, (by_name, seconds) in results.items():
        counts = [sum(each["outcome"] == kind for each in by_name.values()) for kind in kinds]
        print(f"{run_as:10}" + "".join(f"{count:8}" for count in counts) + f"{seconds:10.0f}")
    if "gloo" not in results:
        failed = [each for by_name, _ in results.values() for each in by_name.values() if each["outcome"] == "fail"]
        for each in failed:
            print(f"  {each['test']}: {last_line(each['why'])}")
        return 1 if failed else 0
    wrong = 0
    passed = passed_on_gloo(results)
    for run_as, (by_name, _) in results.items():
        if run_as == "gloo":
            continue
        tried = [name for name in passed if name in by_name]
        missing = [by_name[name] for name in tried if by_name[name]["outcome"] != "pass"]
        more = [name for name, each in by_name.items() if each["outcome"] == "pass" and name not in passed]
        print(f"\n{run_as}: passes {len(tried) - len(missing)} of the {len(tried)} tests that pass on gloo"
              + (f", and {len(more)} others" if run_as == "weft" else " and are skipped for weft"))
        wrong += sum(each["outcome"] in ("fail", "late") for each in missing) if run_as == "weft" else 0
        for each in sorted(missing, key=lambda each: (each["outcome"], each["why"])):
            if each["outcome"] != "skip" or list_missing:
                print(f"  {each['outcome']:5} {each['test']}: {last_line(each['why'])}")
        if list_missing:
            for name in more:
                print(f"  more  {name}: {results['gloo'][0][name]['outcome']} on gloo: "
                      f"{last_line(results['gloo'][0][name]['why'])}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description="compares the backends weft and gloo by torch's distributed_test.py")
    parser.add_argument("--backends", default="gloo,weft", help="comma-separated: gloo, weft")
    parser.add_argument("--filter", default="", help="only tests whose name contains one of these, comma-separated")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 3), help="tests at a time")
    parser.add_argument("--limit", type=float, default=3000, help="seconds per backend")
    parser.add_argument("--list-missing", action="store_true", help="list the tests that pass on gloo only")
    parser.add_argument("--json", help="also write all results to this file")
    asked = parser.parse_args()
    listing = subprocess.run([sys.executable, os.path.abspath(__file__), "--names", asked.filter],
                             env=dict(os.environ, WORLD_SIZE=WORLD_SIZE), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, universal_newlines=True)
    if listing.returncode != 0:
        print(f"skipped: torch's distributed_test.py cannot be imported: {last_line(listing.stderr)}")
        sys.exit(SKIPPED)
    names = json.loads(listing.stdout.splitlines()[-1])
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for slot, run_as in enumerate(asked.backends.split(",")):
            results[run_as] = run_backend(run_as, names, asked.jobs, asked.limit, folder, slot)
            print(f"{run_as}: {len(names)} tests in {results[run_as][1]:.0f} s", file=sys.stderr, flush=True)
        if {"gloo", "weft"} <= set(results):
            gated = [name for name in passed_on_gloo(results) if results["weft"][0][name]["outcome"] == "skip"]
            results["as gloo"] = run_backend("as gloo", gated, asked.jobs, asked.limit, folder, "as")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({run_as: by_name for run_as, (by_name, _) in results.items()}, file, indent=1)
    sys.exit(compare(results, asked.list_missing))


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(sys.argv[3:], sys.argv[2])
    elif "--names" in sys.argv:
        print(json.dumps(names_of_tests(sys.argv[2] if len(sys.argv) > 2 else "")))
    else:
        main()
