"""Tests of the installed weft package. package_test.py runs them in a virtual environment."""

import ctypes
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from html.parser import HTMLParser

import weft

SOURCE = os.environ["WEFT_SOURCE"]
DIGITS = os.path.join(SOURCE, "examples", "digits.csv.gz")
# The whole search takes minutes, so a test that ends shows that it was interrupted.
LONG_SEARCH = "EXPLAIN TRAIN char_gpt ON superpod WITH (b = 4096, planning_seconds = 1000)"
LONG_TRAINING = f"TRAIN digits_mlp FROM '{DIGITS}' STEPS 1000000000"

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None
try:
    import torch
except ImportError:
    torch = None


class Texts(HTMLParser):
    """The tags and the text of a page. Fails if a tag is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in ("br",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


class Statements(unittest.TestCase):
    def test_values_of_statements(self):
        with weft.connect() as session:
            self.assertEqual(session.execute("SET search_limit = 4"), {"set": "search_limit", "value": "4"})
            clusters = session.execute("SHOW CLUSTERS")
            self.assertIsInstance(clusters, weft.Rows)
            self.assertIn("dgx_h100", clusters.column("cluster"))
            self.assertIn({"cluster": "dgx1", "devices": 8, "device": "v100"}.items(),
                          [{key: row[key] for key in ("cluster", "devices", "device")}.items() for row in clusters])
            with self.assertRaisesRegex(KeyError, "no column is named mesch"):
                clusters.column("mesch")
            plan = session.execute("EXPLAIN (FORMAT plan) TRAIN digits_mlp ON dgx1")
            self.assertTrue(plan.startswith("# mesh: gpu=8\n"), plan[:100])
            self.assertEqual(session.execute_all("SET search_limit = 5; DESCRIBE digits_mlp")[1]["parameters"], 9610)
            self.assertIsNone(session.execute("-- nothing"))

    def test_a_script_creates_a_model(self):
        model = "CREATE MODEL mine (b = 2, d = 3) INPUT x[b, d] PARAMETER w[d] AS SELECT sum(x * w) AS loss FROM x, w"
        plan = weft.plan("mine", "dgx1", b=64, script=model)
        self.assertEqual((plan.model, plan.json["indices"]["b"]), ("mine", 64))

    def test_errors_have_a_position_and_a_hint(self):
        with weft.connect() as session:
            with self.assertRaises(weft.Error) as caught:
                session.execute("SET search_limit = 3;\nEXPLAIN TRAIN gpt2 ON pood")
            error = caught.exception
            self.assertEqual((error.message, error.hint), ("unknown cluster or device: pood", "did you mean 'pod'?"))
            self.assertEqual((error.line, error.column, error.kind), (2, 23, "statement"))
            self.assertEqual(error.answers, [{"set": "search_limit", "value": "3"}])
            self.assertEqual(str(error), "2:23: unknown cluster or device: pood\n  EXPLAIN TRAIN gpt2 ON pood\n"
                             "                        ^^^^\n  did you mean 'pod'?")
            copied = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(copied), copied.line), (str(error), 2))
            with self.assertRaises(weft.Error) as caught:
                session.execute("LOAD digits_mlp FROM '/nowhere/at/all.safetensors'")
            self.assertEqual((caught.exception.line, caught.exception.kind), (1, "environment"))
            with self.assertRaisesRegex(weft.Error, "null character"):
                session.execute("SHOW\0MODELS")

    def test_names_and_values_are_quoted(self):
        with weft.connect() as session:
            for hostile in ('gpt2" ON "dgx1', "gpt2; DROP MODEL gpt2", "gpt2'"):
                with self.assertRaises(weft.Error):
                    session.plan(hostile, "dgx1")
            with self.assertRaises(weft.Error):
                session.plan("digits_mlp", "dgx1", precision="bf16'); DROP MODEL gpt2; --")
            with self.assertRaises(TypeError):
                session.plan("digits_mlp", "dgx1", b=[1, 2])
            self.assertIn("gpt2", session.execute("SHOW MODELS").column("model"))

    def test_a_closed_session(self):
        session = weft.connect()
        session.close()
        session.close()
        session.interrupt()
        for use in (lambda: session.execute("SHOW MODELS"), lambda: session.weights("gpt2")):
            with self.assertRaisesRegex(weft.Error, "the session is closed"):
                use()
        self.assertIn("closed", repr(session))

    @unittest.skipIf(pandas is None, "needs pandas")
    def test_rows_as_pandas(self):
        with weft.connect() as session:
            frame = session.execute("SHOW CLUSTERS").to_pandas()
        self.assertEqual(frame.set_index("cluster").loc["dgx1"]["devices"], 8)


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = weft.plan("digits_mlp", "dgx1", b=4096)

    def test_figures(self):
        plan = self.plan
        self.assertEqual((plan.task, plan.model, plan.cluster, plan.devices), ("TRAIN", "digits_mlp", "dgx1", 8))
        self.assertTrue(plan.parallelism and plan.distribution.startswith("gpu=8: "))
        self.assertGreater(plan.step_seconds, 0)
        self.assertTrue(plan.fits and plan.proven and plan.proof)
        self.assertGreater(plan.memory_bytes, plan.memory["parameters"])
        self.assertGreater(len(plan.alternatives), 1)
        self.assertTrue(str(plan).startswith("TRAIN digits_mlp on dgx1 (8 v100): b = 4096"))
        self.assertNotIn("report", plan.json)
        self.assertIn(plan.parallelism, repr(plan))

    def test_execute_returns_the_same_plan(self):
        with weft.connect() as session:
            plan = session.execute("EXPLAIN ( ALTERNATIVES ) TRAIN digits_mlp ON dgx1 WITH (b = 4096);")
            self.assertEqual(plan.distribution, self.plan.distribution)
            self.assertIn("--micro-batch-size", plan.to("megatron"))
            two_axes = "TRAIN digits_mlp ON pod WITH (b = 4096, distribution = 'node=4: slice b; gpu=8: slice b')"
            plan = session.execute(f"EXPLAIN {two_axes}")
            self.assertEqual(plan.to("megatron"), session.execute(f"EXPLAIN (FORMAT megatron) {two_axes}"))
            with self.assertRaisesRegex(weft.Error, "the statement of this plan is not known"):
                session.execute(f"SET search_limit = 3; EXPLAIN {two_axes}").to("megatron")

    def test_formats(self):
        megatron = self.plan.to("megatron")
        self.assertIn("--global-batch-size 4096", megatron)
        self.assertEqual(megatron.launcher, "megatron")
        self.assertGreater(megatron.step_seconds, 0)
        self.assertIsInstance(megatron.lost, list)
        self.assertIn('"train_batch_size": 4096', self.plan.to("deepspeed"))
        self.assertIn("[parallelism]", self.plan.to("torchtitan_toml"))
        for form, function in (("torchtitan", "config"), ("torch", "apply")):
            made = {}
            exec(compile(self.plan.to(form), form, "exec"), made)
            self.assertTrue(callable(made[function]))
        with self.assertRaisesRegex(ValueError, "unknown format: jax"):
            self.plan.to("jax")
        alone = weft.plan("digits_mlp", "h100")
        self.assertEqual((alone.distribution, alone.devices), ("", 1))
        with self.assertRaisesRegex(weft.Error, "launcher settings need several devices"):
            alone.to("megatron")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            page, timeline = os.path.join(folder, "it's.html"), os.path.join(folder, "step.json")
            self.plan.page(page)
            self.plan.timeline(timeline)
            with open(page, encoding="utf-8") as file:
                self.assertIn("digits_mlp", file.read())
            self.assertGreater(os.path.getsize(timeline), 0)

    def test_html_is_escaped_and_closed(self):
        page = Texts(self.plan._repr_html_())
        self.assertIn("TRAIN digits_mlp on dgx1 (8 v100)", page.texts)
        self.assertLessEqual(page.tags, {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "span", "code", "br"})
        name = "<script>alert(1)</script>"
        with weft.connect() as session:
            session.execute(f'CREATE MODEL "{name}" ("<i>" = 8, d = 4) INPUT x["<i>", d] PARAMETER w[d] '
                            "AS SELECT sum(x * w) AS loss FROM x, w")
            plan = session.plan(name, "dgx1")
            for page in (plan._repr_html_(), session.execute("SHOW MODELS")._repr_html_()):
                self.assertIn(name, "".join(Texts(page).texts))
                self.assertNotIn("<script", page)
                self.assertNotIn("<i>", page)

    def test_plans_outlive_their_session(self):
        session = weft.connect()
        plan = session.plan("digits_mlp", "dgx1")
        session.close()
        self.assertTrue(str(plan) and plan._repr_html_())
        with self.assertRaisesRegex(weft.Error, "the session is closed"):
            plan.to("megatron")


class Training(unittest.TestCase):
    def test_weights_share_their_memory(self):
        with weft.connect() as session:
            with self.assertRaisesRegex(weft.Error, "digits_mlp is not trained yet"):
                session.weights("digits_mlp")
            trained = session.train("digits_mlp", DIGITS, 2, optimizer="sgd")
            self.assertEqual(trained["steps"], 2)
            weights = session.weights("digits_mlp")
            session.train("digits_mlp", DIGITS, 1)
        w1 = weights["w1"]
        self.assertEqual((weights.step, w1.dtype, w1.shape, len(w1)), (2, "f32", (64, 128), 64))
        self.assertLessEqual({"w1", "b1", "w2", "b2"}, set(weights))
        self.assertEqual((w1.buffer.shape, w1.buffer.format, w1.buffer.nbytes), ((64, 128), "f", w1.nbytes))
        values = w1.tolist()
        self.assertEqual((len(values), len(values[0])), (64, 128))
        self.assertTrue(any(value != 0 for value in values[0]))
        view = w1.buffer
        del weights, w1
        gc.collect()
        self.assertEqual(view.tolist(), values)  # the view keeps the memory

    def test_dlpack_capsule(self):
        with weft.connect() as session:
            session.train("digits_mlp", DIGITS, 1)
            weights = session.weights("digits_mlp")
        from weft import _dlpack

        w2 = weights["w2"]
        self.assertEqual(w2.__dlpack_device__(), (1, 0))
        capsule = w2.__dlpack__()
        self.assertEqual(len(_dlpack._alive), 1)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(_dlpack.Managed)).contents
        tensor = managed.tensor
        self.assertEqual((tensor.ndim, tensor.shape[0], tensor.shape[1]), (2, 128, 10))
        self.assertEqual((tensor.strides[0], tensor.strides[1]), (10, 1))
        self.assertEqual((tensor.code, tensor.bits, tensor.lanes), (2, 32, 1))
        first = ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float))[0]
        self.assertEqual(first, w2.tolist()[0][0])
        del capsule  # not taken over: freed with the capsule
        self.assertEqual(len(_dlpack._alive), 0)
        # A consumer renames the capsule and calls the deleter.
        capsule = w2.__dlpack__()
        address = pointer(capsule, b"dltensor")
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        used = b"used_dltensor"
        rename(capsule, used)
        del capsule
        self.assertEqual(len(_dlpack._alive), 1)
        deleter = ctypes.cast(address, ctypes.POINTER(_dlpack.Managed)).contents.deleter
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)
        self.assertEqual(len(_dlpack._alive), 0)

    @unittest.skipIf(numpy is None, "needs NumPy")
    def test_numpy(self):
        with weft.connect() as session:
            pixels = numpy.arange(64 * 64, dtype=numpy.float32).reshape(64, 64) % 17
            label = numpy.arange(64, dtype=numpy.int32) % 10
            session.train("digits_mlp", {"pixels": pixels, "label": label}, 3)
            tensor = session.weights("digits_mlp")["w1"]
        array = numpy.asarray(tensor)
        self.assertEqual((array.shape, array.dtype), ((64, 128), numpy.float32))
        self.assertTrue(numpy.array_equal(array, numpy.array(tensor.tolist(), dtype=numpy.float32)))
        array[0, 0] = 7
        self.assertEqual(tensor.tolist()[0][0], 7)
        if hasattr(numpy, "from_dlpack"):
            shared = numpy.from_dlpack(tensor)
            self.assertEqual(shared[0, 0], 7)

    @unittest.skipIf(torch is None or not hasattr(torch, "from_dlpack"), "needs PyTorch")
    def test_torch(self):
        with weft.connect() as session:
            session.train("digits_mlp", DIGITS, 1, precision="bf16")
            weights = session.weights("digits_mlp")
        narrow, step = torch.from_dlpack(weights["w1"]), torch.from_dlpack(weights["step"])
        self.assertEqual((narrow.dtype, tuple(narrow.shape), step.item()), (torch.bfloat16, (64, 128), 1))
        values = weights["w1"].tolist()
        del weights
        gc.collect()
        self.assertEqual(narrow.tolist(), values)

    def test_bf16_is_widened(self):
        with weft.connect() as session:
            session.train("digits_mlp", DIGITS, 1, precision="bf16")
            weights = session.weights("digits_mlp")
        narrow, master = weights["w1"], weights["w1.master"]
        self.assertEqual((narrow.dtype, narrow.shape, narrow.buffer.nbytes), ("bf16", (64, 128), 2 * 64 * 128))
        self.assertFalse(hasattr(narrow, "__array_interface__"))
        # The master weight in f32 rounds to it: 8 bits of precision.
        for rounded, exact in zip(sum(narrow.tolist(), []), sum(master.tolist(), [])):
            self.assertLessEqual(abs(rounded - exact), abs(exact) / 2**8)
        self.assertTrue(any(value != 0 for value in narrow.tolist()[0]))
        self.assertEqual((weights["step"].shape, weights["step"].tolist()), ((), 1))
        if numpy is not None:
            self.assertEqual((numpy.asarray(narrow).dtype, numpy.asarray(narrow).tolist()),
                             (numpy.float32, narrow.tolist()))

    def test_data_of_arrays(self):
        import array

        pixels = memoryview(array.array("f", [float(i % 17) for i in range(64 * 64)])).cast("B").cast("f", (64, 64))
        label = array.array("i", [i % 10 for i in range(64)])
        with weft.connect() as session:
            trained = session.train("digits_mlp", {"pixels": pixels, "label": label}, 5)
            self.assertEqual(len(trained["curve"]["losses"]), 5)
            inferred = session.infer("digits_mlp", {"pixels": pixels, "label": label})
            self.assertEqual((inferred["examples"], len(inferred["rows"])), (64, 64))
            with self.assertRaisesRegex(weft.Error, "pixels"):
                session.train("digits_mlp", {"pixels": label, "label": label}, 1)
            with self.assertRaisesRegex(TypeError, "label: expected a file name or an array"):
                session.train("digits_mlp", {"pixels": pixels, "label": 3}, 1)
            with self.assertRaisesRegex(weft.Error, "the data has no arrays"):
                session.train("digits_mlp", {}, 1)

    def test_ranks_are_processes_of_the_packed_program(self):
        with weft.connect() as session:
            trained = session.execute(f"TRAIN digits_mlp ON LOCAL 2 FROM '{DIGITS}' STEPS 2 WITH (threads = 1)")
        self.assertEqual(trained["steps"], 2)


class LongCalls(unittest.TestCase):
    def test_progress_of_a_training_and_errors_of_callbacks(self):
        seen = []

        def stop(progress):
            seen.append((progress, threading.current_thread()))
            raise RuntimeError("enough")

        with weft.connect() as session:
            with self.assertRaisesRegex(RuntimeError, "enough"):
                session.execute(LONG_TRAINING, on_progress=stop)
            progress, thread = seen[0]
            self.assertIsInstance(progress, weft.TrainProgress)
            self.assertEqual((progress.model, progress.steps), ("digits_mlp", 1000000000))
            self.assertIs(thread, threading.current_thread())
            self.assertEqual(session.execute("SET search_limit = 3")["value"], "3")

    def test_interrupt_from_a_callback(self):
        with weft.connect() as session:
            with self.assertRaisesRegex(weft.Error, "interrupted"):
                session.execute(LONG_TRAINING, on_progress=lambda progress: session.interrupt())

    def test_an_interrupted_search_returns_the_best_plan(self):
        with weft.connect() as session:
            def enough(progress):
                self.assertIsInstance(progress, weft.SearchProgress)
                if progress.best_seconds > 0:
                    session.interrupt()

            plan = session.execute(LONG_SEARCH, on_progress=enough)
        self.assertFalse(plan.proven)
        self.assertIn("interrupted", plan.proof)
        self.assertGreater(plan.step_seconds, 0)

    def test_threads_share_a_session(self):
        found = []
        with weft.connect() as session:
            def work(limit):
                found.append(session.execute(f"SET search_limit = {limit}")["value"])

            threads = [threading.Thread(target=work, args=(limit,)) for limit in range(1, 9)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(sorted(found), [str(limit) for limit in range(1, 9)])

    def test_others_work_during_a_call(self):
        """The interpreter lock is released: a statement of another session runs during a training."""
        with weft.connect() as long, weft.connect() as short:
            failure = []

            def train():
                try:
                    long.execute(LONG_TRAINING, on_progress=lambda progress: running.set())
                except weft.Error as error:
                    failure.append(error)

            running = threading.Event()
            thread = threading.Thread(target=train)
            thread.start()
            running.wait()
            self.assertEqual(short.execute("DESCRIBE digits_mlp")["parameters"], 9610)
            self.assertTrue(thread.is_alive())
            while thread.is_alive():
                long.interrupt()
                thread.join(0.05)
        self.assertIn("interrupted", failure[0].message)

    def ctrl_c(self, statement):
        script = ("import sys, weft\n"
                  "session = weft.connect()\n"
                  "try:\n"
                  "    session.execute(sys.argv[1], on_progress=lambda progress: print('busy', flush=True))\n"
                  "except KeyboardInterrupt:\n"
                  "    print('ended', session.execute('SET search_limit = 3')['value'], flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", script, statement], stdout=subprocess.PIPE,
                                 universal_newlines=True, env=child_environment())
        self.assertEqual(child.stdout.readline(), "busy\n")
        child.send_signal(signal.SIGINT)
        rest = child.communicate()[0].splitlines()
        self.assertEqual((rest[-1:], child.returncode), (["ended 3"], 0))

    def test_ctrl_c_ends_a_search(self):
        self.ctrl_c(LONG_SEARCH)

    def test_ctrl_c_ends_a_training(self):
        self.ctrl_c(LONG_TRAINING)


class Package(unittest.TestCase):
    def test_version_and_program(self):
        from weft import _library

        self.assertEqual(weft.__version__, _library.wheel()["version"])
        # The program that these become must not get this runtime.
        def become(run, *arguments):
            code = (f"import os, runpy, sys; os.environ.pop('LD_PRELOAD', None); sys.argv = {['weft', *arguments]!r}; "
                    f"runpy.{run}, run_name='__main__')")
            return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, universal_newlines=True,
                                  env=child_environment()).stdout

        self.assertEqual(become("run_module('weft'", "--version"), f"weft {weft.__version__}\n")
        script = os.path.join(os.path.dirname(sys.executable), "weft")
        described = become(f"run_path({script!r}", "--format", "json", "-c", "DESCRIBE digits_mlp")
        self.assertEqual(json.loads(described)["parameters"], 9610)

    def test_export_is_in_the_package(self):
        asked = subprocess.run([sys.executable, "-m", "weft.export", "--help"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, universal_newlines=True, env=child_environment())
        if torch is None:
            self.assertIn("error: weft.export needs PyTorch", asked.stderr)
        else:
            self.assertIn("a PyTorch model as WeftQL", asked.stdout)

    def test_public_names_are_documented(self):
        for name in weft.__all__:
            if name != "__version__":
                self.assertTrue(getattr(weft, name).__doc__, name)
                self.assertEqual(getattr(weft, name).__module__, "weft")
        with self.assertRaises(AttributeError):
            weft.conect


def child_environment(preload=True):
    environment = dict(os.environ)
    if preload and PRELOAD:
        environment["LD_PRELOAD"] = PRELOAD
    return environment


# Programs with a sanitizer's runtime of their own must not get a second one.
PRELOAD = os.environ.pop("LD_PRELOAD", "")


def main():
    module = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    cases = loader.loadTestsFromNames(sys.argv[1:], module) if len(sys.argv) > 1 else loader.loadTestsFromModule(module)
    count = cases.countTestCases()
    result = unittest.TextTestRunner(sys.stderr, verbosity=2).run(cases)
    failed = len(result.failures) + len(result.errors)
    print(f"{count - len(result.skipped)} cases, {failed} failed")  # read by scripts/test.sh
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
