"""Configurations of torchtitan in Python: what EXPLAIN (FORMAT torchtitan) writes, and what weft.titan reads.

The files are imported with small classes that have the names, fields and defaults of torchtitan's
configuration (main, 2026-08). A field that torchtitan lacks is an error of dataclasses.replace.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from weft import titan

try:
    import tomllib
except ImportError:
    print("skipped: expected Python 3.11 or later, which has tomllib")
    sys.exit(77)

WEFT = os.environ["WEFT"]
STUB = {
    "torchtitan/__init__.py": "",
    "torchtitan/distributed/__init__.py": "",
    "torchtitan/distributed/activation_checkpoint.py": """
        from dataclasses import dataclass
        class SelectiveAC:
            @dataclass(kw_only=True)
            class Config:
                preserve_rng_state: bool = True
        class FullAC:
            @dataclass(kw_only=True)
            class Config:
                preserve_rng_state: bool = True
        """,
    "torchtitan/trainer.py": """
        from dataclasses import dataclass, field
        from typing import Any
        from torchtitan.distributed.activation_checkpoint import SelectiveAC
        @dataclass(kw_only=True, slots=True)
        class TrainingConfig:
            num_tokens_per_microbatch_per_dp_rank: int = 16384
            num_tokens_per_train_step: int = -1
            max_context_length: int = 2048
            steps: int = 10000
            enable_cpu_offload: bool = False
            disable_cuda_graphs: bool = False
            mixed_precision_param: str = "bfloat16"
        @dataclass(kw_only=True, slots=True)
        class ParallelismConfig:
            data_parallel_replicate_degree: int = 1
            data_parallel_shard_degree: int = -1
            fsdp_reshard_after_forward: str = "default"
            tensor_parallel_degree: int = 1
            enable_sequence_parallel: bool = True
            pipeline_parallel_degree: int = 1
            module_fqns_per_model_part: Any = None
            pipeline_parallel_layers_per_stage: Any = None
            pipeline_parallel_schedule: str = "1F1B"
            pipeline_parallel_schedule_csv: Any = ""
            num_pp_microbatches: int = 1
            context_parallel_degree: int = 1
            expert_parallel_degree: int = 1
        class Trainer:
            @dataclass(kw_only=True, slots=True)
            class Config:
                model_spec: Any = None
                training: TrainingConfig = field(default_factory=TrainingConfig)
                parallelism: ParallelismConfig = field(default_factory=ParallelismConfig)
                activation_checkpoint: Any = field(default_factory=SelectiveAC.Config)
                def __post_init__(self):
                    if self.parallelism.pipeline_parallel_degree > 1 and not self.training.disable_cuda_graphs:
                        raise ValueError("CUDA graphs do not support pipeline parallelism")
        """,
    "base_job.py": """
        from types import SimpleNamespace
        from torchtitan.trainer import Trainer, TrainingConfig
        def config():
            return Trainer.Config(model_spec=SimpleNamespace(model=SimpleNamespace(layers=[None] * LAYERS)),
                                  training=TrainingConfig(steps=77))
        LAYERS = 6
        """,
    "older_job.py": """
        from types import SimpleNamespace as Of
        def config():
            return Of(training=Of(local_batch_size=8, global_batch_size=64, seq_len=2048),
                      parallelism=Of(tensor_parallel_degree=2, data_parallel_shard_degree=-1, pipeline_parallel_degree=2,
                                     pipeline_parallel_schedule="1F1B", pipeline_parallel_microbatch_size=2),
                      activation_checkpoint=Of(mode="full"))
        """,
}
# char_gpt has 6 layers and 256 tokens per example.
PLANS = {
    "zero3": ("gpu=8: slice b, shard parameters; recompute layers", 64),
    "hsdp": ("gpu_a=2: slice b; gpu_b=4: slice b, shard parameters", 64),
    "tensor": ("gpu_a=4: slice b; gpu_b=2: slice h, f, v", 64),
    "stages": ("gpu_a=4: stage; gpu_b=2: slice b, shard optimizer; micro=8", 64),
    "turn": ("gpu_a=2: stage, chunks=2; gpu_b=4: slice b; micro=4; schedule zb_v", 64),
    "loop": ("gpu_a=3: stage, chunks=2; gpu_b=2: slice b; micro=6; schedule interleaved_one_f_one_b", 60),
}


def explain(form, distribution, rows, devices=8):
    text = (f"CREATE CLUSTER ranks AS 1 NODES OF {devices} DEVICES h100 LINK gpu WITHIN node (450 GB/s, 1.5 us); "
            f"EXPLAIN (FORMAT {form}) TRAIN char_gpt ON ranks WITH (b = {rows}, distribution = '{distribution}')")
    done = subprocess.run([WEFT, "--format", "json", "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


class Titan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        for path, text in STUB.items():
            path = os.path.join(cls.folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
        sys.path.insert(0, cls.folder)
        cls.answers = {}
        for name, (distribution, rows) in PLANS.items():
            answer = explain("torchtitan", distribution, rows, devices=6 if name == "loop" else 8)
            cls.answers[name] = answer
            with open(os.path.join(cls.folder, f"plan_{name}.py"), "w") as file:
                file.write(answer["configuration"].replace('MODEL = ""', 'MODEL = "base_job:config"'))

    def config(self, name):
        return titan.load(f"plan_{name}:config")()

    def test_degrees_and_batches(self):
        config = self.config("zero3")
        self.assertEqual(config.training.steps, 77)  # from the model's configuration
        self.assertEqual(config.parallelism.data_parallel_shard_degree, 8)
        self.assertEqual(config.parallelism.fsdp_reshard_after_forward, "always")
        self.assertEqual(config.parallelism.pipeline_parallel_schedule_csv, "")
        self.assertEqual(config.training.max_context_length, 256)
        self.assertEqual(config.training.num_tokens_per_microbatch_per_dp_rank, 64 // 8 * 256)
        self.assertEqual(config.training.num_tokens_per_train_step, 64 * 256)
        self.assertEqual(type(config.activation_checkpoint).__qualname__, "FullAC.Config")
        self.assertEqual(self.answers["zero3"]["lost"], [])
        config = self.config("hsdp")
        self.assertEqual((config.parallelism.data_parallel_replicate_degree, config.parallelism.data_parallel_shard_degree), (2, 4))
        self.assertIsNone(config.activation_checkpoint)
        config = self.config("tensor")
        self.assertEqual((config.parallelism.data_parallel_replicate_degree, config.parallelism.data_parallel_shard_degree), (4, 1))
        self.assertEqual((config.parallelism.tensor_parallel_degree, config.parallelism.enable_sequence_parallel), (2, False))

    def test_stages(self):
        for name, schedule, stages in (("stages", "1F1B", 4), ("turn", "ZBVZeroBubble", 4), ("loop", "Interleaved1F1B", 6)):
            parallelism = self.config(name).parallelism
            self.assertEqual(parallelism.pipeline_parallel_schedule, schedule)
            parts = parallelism.module_fqns_per_model_part
            self.assertEqual(len(parts), stages)
            self.assertEqual([one for part in parts for one in part],
                             ["tok_embeddings", *(f"layers.{i}" for i in range(6)), "norm", "lm_head"])
            checked = subprocess.run([WEFT, "schedule", "check", parallelism.pipeline_parallel_schedule_csv],
                                     capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            with open(parallelism.pipeline_parallel_schedule_csv) as file:
                self.assertEqual(len(file.read().splitlines()), parallelism.pipeline_parallel_degree)
        self.assertIn("ZeRO 1: gradients are sharded too", self.answers["stages"]["lost"])

    # Experts need the whole batch at once, so this plan is estimated but not built.
    def test_stages_of_plans_that_are_only_estimated(self):
        text = ("EXPLAIN (FORMAT torchtitan) TRAIN mixtral_8x7b ON pod WITH (b = 64, precision = bf16, distribution = "
                "'node=4: stage; gpu=8: slice x, b, shard optimizer; micro=4')")
        done = subprocess.run([WEFT, "--format", "json", "-c", text], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout.splitlines()[-1])
        made = {"__file__": "x.py"}
        exec(compile(answer["configuration"], "x.py", "exec"), made)
        self.assertEqual((made["PARALLELISM"]["expert_parallel_degree"], made["PARALLELISM"]["pipeline_parallel_degree"]), (8, 4))
        self.assertEqual([sum(one.startswith("layers.") for one in part) for part in made["STAGES"]], [8] * 4)
        self.assertEqual(len(made["SCHEDULE"].split()), 4)
        self.assertTrue(any("layers are divided as equally as possible" in one for one in answer["lost"]), answer["lost"])

    def test_processes_write_one_schedule(self):
        path = self.config("turn").parallelism.pipeline_parallel_schedule_csv
        with open(path, "w") as file:
            file.write("another")
        text = "import weft.titan; weft.titan.load('plan_turn:config')()"
        together = [subprocess.Popen([sys.executable, "-c", text], cwd=self.folder) for _ in range(3)]
        self.assertEqual([one.wait() for one in together], [0, 0, 0])
        with open(path) as file:
            self.assertTrue(file.read().startswith("0F0,"))
        self.assertEqual([one for one in os.listdir(self.folder) if one.startswith("plan_turn.csv.")], [])

    def test_other_models_are_errors(self):
        import base_job
        import plan_zero3

        with self.assertRaisesRegex(ValueError, "expected a model of 6 layers, found 4"):
            plan_zero3.config(lambda: base_job.Trainer.Config(
                model_spec=base_job.SimpleNamespace(model=base_job.SimpleNamespace(layers=[None] * 4))))
        unnamed = explain("torchtitan", *PLANS["zero3"])["configuration"]
        made = {"__file__": "x.py"}
        exec(compile(unnamed, "x.py", "exec"), made)
        with self.assertRaisesRegex(ValueError, "expected MODEL = 'module:function', found ''"):
            made["config"]()

    # The plan in 0.2.2's TOML, and the Python configuration printed as TOML.
    def test_prints_the_job_of_the_same_plan(self):
        for name in ("zero3", "hsdp", "tensor"):
            sections, unread = titan.job_of(self.config(name))
            made = tomllib.loads(titan.print_job(sections, unread))
            usual = tomllib.loads(explain("torchtitan_toml", *PLANS[name])["configuration"])
            for section in ("parallelism", "activation_checkpoint"):
                for key, value in usual[section].items():
                    self.assertEqual(made[section][key], value, f"{name}: {section}.{key}")
            for key in ("local_batch_size", "global_batch_size", "seq_len"):
                self.assertEqual(made["training"][key], usual["training"][key], f"{name}: {key}")

    def test_prints_stages(self):
        sections, unread = titan.job_of(self.config("turn"))
        self.assertEqual(sections["parallelism"]["pipeline_parallel_schedule"], "ZBVZeroBubble")
        self.assertEqual(sections["parallelism"]["pipeline_parallel_microbatch_size"], 64 // 4 // 4)
        self.assertEqual(sections["training"]["local_batch_size"], 64 // 4)
        self.assertEqual([one.split(" = ")[0] for one in unread],
                         ["parallelism.module_fqns_per_model_part", "parallelism.pipeline_parallel_schedule_csv"])
        self.assertTrue(titan.print_job(sections, unread).startswith("# not read: parallelism.module_fqns_per_model_part"))

    def test_reads_older_configurations(self):
        sections, unread = titan.job_of(titan.load("older_job:config")())
        self.assertEqual(unread, [])
        self.assertEqual(sections["training"], {"local_batch_size": 8, "global_batch_size": 64, "seq_len": 2048})
        self.assertEqual(sections["parallelism"]["pipeline_parallel_microbatch_size"], 2)
        self.assertEqual(sections["activation_checkpoint"], {"mode": "full"})

    def test_command(self):
        done = subprocess.run([sys.executable, "-m", "weft.titan", "plan_zero3:config"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(tomllib.loads(done.stdout)["parallelism"]["data_parallel_shard_degree"], 8)
        for name, why in (("plan_zero3", "expected module:function, found 'plan_zero3'"),
                          ("plan_zero3:plan", "plan_zero3 has no function plan"),
                          ("no_such_job:config", "cannot import no_such_job")):
            with self.assertRaisesRegex(SystemExit, why):
                titan.load(name)
        with contextlib.redirect_stderr(io.StringIO()) as usage:
            self.assertEqual(titan.main([]), 2)
        self.assertIn("python -m weft.titan", usage.getvalue())

    def test_unequal_sizes_are_errors(self):
        config = self.config("zero3")
        config.training.num_tokens_per_microbatch_per_dp_rank = 300
        with self.assertRaisesRegex(SystemExit, "expected a multiple of max_context_length, found 300 and 256"):
            titan.job_of(config)
        config = self.config("zero3")
        config.activation_checkpoint = object()
        with self.assertRaisesRegex(SystemExit, "expected None, SelectiveAC or FullAC, found object"):
            titan.job_of(config)


if __name__ == "__main__":
    unittest.main()
