"""Prints a torchtitan configuration given in Python as the job.toml that `weft improve` reads.

    python -m weft.titan torchtitan.models.llama3.config_registry:llama3_8b > job.toml
    weft improve --torchtitan job.toml --model llama3_8b.json --on my_cluster

torchtitan after 0.2.2 is configured by functions that return its Trainer.Config. This calls such a
function and prints degrees, batches and activation checkpoints under the names of 0.2.2. Settings that
0.2.2 does not have, such as stage cuts, are listed as comments. Older functions, whose configuration has
local_batch_size, are read too.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, Callable, Dict, List, Tuple

DEGREES = ("data_parallel_replicate_degree", "data_parallel_shard_degree", "fsdp_reshard_after_forward",
           "tensor_parallel_degree", "context_parallel_degree", "expert_parallel_degree",
           "expert_tensor_parallel_degree", "pipeline_parallel_degree", "pipeline_parallel_schedule")
# What changes the plan, and that 0.2.2 cannot express. With the value that changes nothing.
UNREAD = (("module_fqns_per_model_part", None), ("pipeline_parallel_schedule_csv", ""),
          ("pipeline_parallel_layers_per_stage", None), ("enable_sequence_parallel", True))


def load(name: str) -> Callable[[], Any]:
    """The function that "module:function" names."""
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise SystemExit(f"error: expected module:function, found {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        raise SystemExit(f"error: cannot import {module}: {error}") from error
    if not callable(found):
        raise SystemExit(f"error: {module} has no function {function}")
    return found


def job_of(config: Any) -> Tuple[Dict[str, Dict[str, Any]], List[str]]:
    """The sections of job.toml, and the settings that it cannot express."""
    training, parallelism = config.training, config.parallelism
    degrees = {key: getattr(parallelism, key) for key in DEGREES if getattr(parallelism, key, None) is not None}
    pipelined = degrees.get("pipeline_parallel_degree", 1) > 1
    if not pipelined:
        degrees.pop("pipeline_parallel_schedule", None)
    batches, micro_batch = _batches(training, parallelism, pipelined)
    if pipelined:
        degrees["pipeline_parallel_microbatch_size"] = micro_batch
    for key in ("mixed_precision_param", "enable_cpu_offload"):
        if hasattr(training, key):
            batches[key] = getattr(training, key)
    unread = [f"parallelism.{key} = {getattr(parallelism, key)}" for key, usual in UNREAD
              if getattr(parallelism, key, usual) not in (usual, None)]
    recompute = {"mode": _recompute(getattr(config, "activation_checkpoint", None))}
    return {"training": batches, "parallelism": degrees, "activation_checkpoint": recompute}, unread


def _batches(training: Any, parallelism: Any, pipelined: bool) -> Tuple[Dict[str, Any], int]:
    """The batches in examples, and the size of a micro-batch."""
    if hasattr(training, "local_batch_size"):
        made = {key: getattr(training, key) for key in ("local_batch_size", "global_batch_size", "seq_len")}
        return made, getattr(parallelism, "pipeline_parallel_microbatch_size", 1)
    length = training.max_context_length
    micro_batch = _examples(training.num_tokens_per_microbatch_per_dp_rank, length,
                            "num_tokens_per_microbatch_per_dp_rank")
    made = {"local_batch_size": micro_batch * (parallelism.num_pp_microbatches if pipelined else 1),
            "seq_len": length}
    if training.num_tokens_per_train_step > 0:
        made["global_batch_size"] = _examples(training.num_tokens_per_train_step, length, "num_tokens_per_train_step")
    return made, micro_batch


def _examples(tokens: int, length: int, what: str) -> int:
    if tokens % length:
        raise SystemExit(f"error: training.{what}: expected a multiple of max_context_length, found {tokens} and {length}")
    return tokens // length


def _recompute(policy: Any) -> str:
    """The mode of a policy: a class such as FullAC.Config, none, or 0.2.2's section."""
    if policy is None:
        return "none"
    if hasattr(policy, "mode"):
        return policy.mode
    for one in type(policy).__mro__:
        name = one.__qualname__.split(".")[0]
        if name in ("FullAC", "SelectiveAC"):
            return name[:-2].lower()
    raise SystemExit(f"error: activation_checkpoint: expected None, SelectiveAC or FullAC, found {type(policy).__qualname__}")


def print_job(sections: Dict[str, Dict[str, Any]], unread: List[str]) -> str:
    lines = [f"# not read: {one}" for one in unread]
    for section, values in sections.items():
        lines += ([""] if lines else []) + [f"[{section}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def main(arguments: List[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stdout if arguments in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    print(print_job(*job_of(load(arguments[0])())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
