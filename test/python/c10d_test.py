"""The c10d backend "weft": builds it for the installed torch, then runs c10d_cases.py and faults.

Exits with 77 if torch, a compiler or its headers are missing. WEFT_LIBRARY names the library to test.
"""

import datetime
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

SKIPPED = 77

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

import c10d_cases
import c10d_processes
import weft.torch
from weft.torch import _extension, build

WRONG_CALLS = [  # per rank, a call; what every error names
    ("a size", lambda rank: dist.all_reduce(torch.ones(3 + rank)), ("x 3", "x 4")),
    ("a type", lambda rank: dist.all_reduce(torch.ones(3, dtype=(torch.float32, torch.int64)[rank])), ("f32", "i64")),
    ("an operation", lambda rank: dist.all_reduce(torch.ones(3), (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[rank]),
     ("sum", "max")),
    ("a root", lambda rank: (dist.broadcast(torch.ones(3), rank), dist.barrier()), ("from rank 0", "from rank 1")),
    ("the order", lambda rank: (dist.all_reduce(torch.ones(3)), dist.barrier()) if rank == 0 else
     (dist.barrier(), dist.all_reduce(torch.ones(3))), ("all_reduce", "barrier")),
    ("splits", lambda rank: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [2, 2], ([2, 2], [1, 3])[rank]),
     ("counts do not match", "rank 1")),
]


def begin(rank, size, path, seconds=60):
    torch.set_num_threads(1)
    dist.init_process_group("weft", init_method="file://" + path, rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=seconds))


def error_of(call):
    """The text of the error, and the seconds until it was raised."""
    began = time.time()
    try:
        call()
    except RuntimeError as error:
        return str(error), time.time() - began
    return "no error", time.time() - began


class Collectives(unittest.TestCase):
    def run_cases(self, size, transport=""):
        """Runs the cases in one set of processes. After a case that fails, the others run in a new set."""
        waiting, problems = list(c10d_cases.CASES), []
        while waiting:
            path = c10d_processes.fresh_path()

            def ranks(rank, size):
                if transport:
                    os.environ["WEFT_TORCH_TRANSPORT"] = transport
                begin(rank, size, path)
                for case in waiting:
                    c10d_processes.begin_case(case.__name__)
                    case(rank, size)
                dist.destroy_process_group()

            try:
                c10d_processes.run(size, ranks)
                break
            except c10d_processes.RankFailed as failure:
                problems.append(str(failure))
                names = [case.__name__ for case in waiting]
                waiting = waiting[names.index(failure.at) + 1:] if failure.at else []
        if problems:
            self.fail("\n".join(problems))

    def test_two_ranks(self):
        self.run_cases(2)

    def test_three_ranks(self):
        self.run_cases(3)

    def test_four_ranks(self):
        self.run_cases(4)

    def test_over_sockets(self):
        self.run_cases(2, "tcp")

    def test_one_rank(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path)
            tensor = torch.ones(3)
            dist.all_reduce(tensor)
            dist.barrier()
            return tensor.tolist()

        self.assertEqual(c10d_processes.run(1, ranks), [[1.0, 1.0, 1.0]])


class Faults(unittest.TestCase):
    def test_mismatched_calls_name_both_sides(self):
        for what, call, texts in WRONG_CALLS:
            path = c10d_processes.fresh_path()

            def ranks(rank, size):
                begin(rank, size, path)
                return error_of(lambda: call(rank))[0]

            for error in c10d_processes.run(2, ranks):
                for text in texts:
                    self.assertIn(text, error, f"ranks that differ in {what}")

    def test_killed_rank_is_named(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path)
            dist.barrier()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return error_of(lambda: dist.all_reduce(torch.ones(5)))[0]

        for rank, error in enumerate(c10d_processes.run(3, ranks, may_die=(1,))):
            if rank != 1:
                self.assertIn("rank 1", error)

    def test_killed_peer_of_a_message_is_named(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path)
            dist.barrier()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return error_of(lambda: dist.recv(torch.ones(5), 1))[0]

        self.assertIn("rank 1", c10d_processes.run(2, ranks, may_die=(1,))[0])

    def test_timeout_names_the_missing_rank(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path, seconds=2)
            dist.barrier()
            if rank == 1:
                return error_of(lambda: time.sleep(5))
            return error_of(lambda: dist.all_reduce(torch.ones(5)))

        (error, seconds), _ = c10d_processes.run(2, ranks)
        self.assertIn("rank 1", error)
        self.assertGreater(seconds, 1.9)

    def test_message_without_sender_times_out(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path, seconds=2)
            error = error_of(lambda: dist.recv(torch.ones(5), 1, tag=4))[0] if rank == 0 else ""
            tensor = torch.ones(1)
            store_wait = dist.distributed_c10d._get_default_store()
            if rank == 0:
                store_wait.set("late", "1")
            else:
                store_wait.wait(["late"], datetime.timedelta(seconds=60))
            dist.all_reduce(tensor)  # the group is still usable
            return error, tensor.item()

        (error, total), _ = c10d_processes.run(2, ranks)
        self.assertIn("recv from rank 1 with tag 4", error)
        self.assertEqual(total, 2)

    def test_message_of_another_size_is_refused(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path)
            if rank == 0:
                dist.send(torch.ones(3), 1)
                return ""
            return error_of(lambda: dist.recv(torch.ones(5), 0))[0]

        error = c10d_processes.run(2, ranks)[1]
        self.assertIn("rank 0 sent 3 elements of Float", error)
        self.assertIn("5", error)

    def test_missing_rank_is_named_at_creation(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            if rank == 2:
                return "did not come"
            return error_of(lambda: begin(rank, size, path, seconds=3))[0]

        self.assertIn("rank 2 of 3", c10d_processes.run(3, ranks)[0])

    def test_monitored_barrier_names_all_missing_ranks(self):
        path = c10d_processes.fresh_path()

        def ranks(rank, size):
            begin(rank, size, path)
            group = dist.distributed_c10d._get_default_group()
            group.monitored_barrier(datetime.timedelta(seconds=20))
            if rank > 0:
                dist.distributed_c10d._get_default_store().wait(["told"], datetime.timedelta(seconds=60))
                return ""
            error = error_of(lambda: group.monitored_barrier(datetime.timedelta(seconds=1), wait_all_ranks=True))[0]
            dist.distributed_c10d._get_default_store().set("told", "1")
            return error

        self.assertIn("Ranks 1, 2 failed to pass monitoredBarrier", c10d_processes.run(3, ranks)[0])

    def test_exit_during_a_collective_ends(self):
        """A rank that exits before the others call its collective: its exit takes seconds, and they fail."""
        program = (
            "import datetime, sys, time, torch, torch.distributed as dist, weft.torch\n"
            "rank, path = int(sys.argv[1]), sys.argv[2]\n"
            "dist.init_process_group('weft', init_method='file://' + path, rank=rank, world_size=2,\n"
            "                        timeout=datetime.timedelta(seconds=600))\n"
            "if rank == 0:\n"
            "    work = dist.all_reduce(torch.ones(4), async_op=True)\n"
            "    sys.exit('gave up')\n"
            "time.sleep(12)\n"
            "dist.all_reduce(torch.ones(4)); dist.all_reduce(torch.ones(4))\n")
        path = c10d_processes.fresh_path()
        ranks = [subprocess.Popen([sys.executable, "-c", program, str(rank), path], stderr=subprocess.PIPE,
                                  universal_newlines=True) for rank in range(2)]
        errors = [rank.communicate(timeout=c10d_processes.DEADLINE)[1] for rank in ranks]
        self.assertIn("gave up", errors[0])
        self.assertIn("rank 0", errors[1])


class Build(unittest.TestCase):
    def build(self, folder, **environment):
        return subprocess.run([sys.executable, "-m", "weft.torch.build", "--to", folder], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, env=dict(os.environ, **environment))

    def test_missing_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.build(folder, CXX="/no/such/compiler")
            self.assertEqual(done.returncode, 1)
            self.assertIn("no C++ compiler: looked for /no/such/compiler", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_failing_compiler_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.build(folder, CXX="false")
            self.assertEqual(done.returncode, 1)
            self.assertIn("does not compile against torch " + torch.__version__, done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ImportError, "not built for torch(.|\n)*python -m weft.torch.build"):
                weft.torch._check(folder, _extension.identity())

    def test_built_for_another_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(_extension.description_of(folder), "w", encoding="utf-8") as file:
                file.write(_extension.json_of(dict(_extension.identity(), torch="1.0")))
            with open(_extension.file_of(folder), "w", encoding="utf-8"):
                pass
            with self.assertRaisesRegex(ImportError, "built for torch 1.0, and this is " + re.escape(torch.__version__)):
                weft.torch._check(folder, _extension.identity())


def prepare():
    """Builds the backend if it is not built yet. Exits with 77 if that is not possible here."""
    try:
        weft.torch.load()
        return
    except ImportError:
        pass
    try:
        print("built", build.build())
    except build.BuildError as error:
        if "does not compile" in str(error):
            raise
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    weft.torch.load()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # some names of collectives are older than others
    prepare()
    unittest.main(verbosity=2)
