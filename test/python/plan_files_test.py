"""Executes the files that Weft writes for PyTorch, and compares loss and gradients with one process.

    plan_files_test.py                  writes the files with $WEFT into a temporary folder, and executes them
    plan_files_test.py --write FOLDER   only writes them
    plan_files_test.py --read FOLDER    executes files written elsewhere

Plans are applied to staged_gpt.py, and every shipped schedule to small linear stages, in 1 to 8 processes over
Gloo, or over NCCL on one GPU with PLAN_BACKEND=nccl. Exits with 77 if PyTorch is older than 2.6, after compiling the files.
"""

import argparse
import concurrent.futures
import glob
import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 1e-4
SECONDS = 100  # for one case

# Distributions of staged_gpt over ranks of one node.
HEADS = "slice b4, h, b1, b2, b3, d1, v"
PLANS = {
    "tp2": (2, f"gpu=2: {HEADS}"),
    "tp2_sequence": (2, f"gpu=2: {HEADS}, s"),
    "dp2": (2, "gpu=2: slice b"),
    "zero3": (2, "gpu=2: slice b, shard parameters"),
    "zero3_recompute": (2, "gpu=2: slice b, shard parameters; recompute layers"),
    "zero3_selective": (2, "gpu=2: slice b, shard parameters; recompute selective"),
    "dp2_tp2": (4, f"gpu_a=2: slice b; gpu_b=2: {HEADS}"),
    "hsdp_tp2": (8, f"gpu_a=2: slice b; gpu_b=2: slice b, shard parameters; gpu_c=2: {HEADS}"),
    "pp2_1f1b": (2, "gpu=2: stage; micro=4"),
    "pp2_interleaved": (2, "gpu=2: stage, chunks=2; micro=4; schedule interleaved_one_f_one_b"),
    "pp2_zb_h1": (2, "gpu=2: stage; micro=4; schedule zb_h1"),
    "pp2_zb_v": (2, "gpu=2: stage, chunks=2; micro=4; schedule zb_v"),
    "pp2_dualpipe_v": (2, "gpu=2: stage, chunks=2; micro=4; schedule dualpipe_v"),
    "pp2_zero3": (4, "gpu_a=2: stage; gpu_b=2: slice b, shard parameters; micro=4"),
    "pp2_tp2": (4, f"gpu_a=2: stage; gpu_b=2: {HEADS}; micro=4"),
}
CLUSTER = "CREATE CLUSTER ranks{0} AS 1 NODES OF {0} DEVICES h100 LINK gpu WITHIN node (450 GB/s, 1.5 us)"
SCHEDULE_SIZES = [(2, 4), (4, 8)]


def run_weft(weft, *arguments, folder):
    done = subprocess.run([weft, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stderr}"
    return done.stdout


def write(weft, folder):
    """Writes a Python file per plan and a CSV per schedule, size and format."""
    from weft import export

    script = os.path.join(HERE, "staged_gpt.py")
    model, inputs, loss, targets = export.script_model(script, "model")
    export.export_onnx(model, inputs, os.path.join(folder, "gpt.onnx"), "staged_gpt", loss, targets)
    run_weft(weft, "import", "gpt.onnx", "--name", "staged_gpt", "-o", "gpt.weft", folder=folder)
    for name, (ranks, distribution) in PLANS.items():
        text = (f"RUN 'gpt.weft'; {CLUSTER.format(ranks)}; EXPLAIN (FORMAT torch) TRAIN staged_gpt "
                f"ON ranks{ranks} WITH (distribution = '{distribution}')")
        answers = run_weft(weft, "--format", "json", "-c", text, folder=folder).splitlines()
        answer = json.loads(answers[-1])
        with open(os.path.join(folder, f"plan_{name}.py"), "w") as file:
            file.write(answer["configuration"])
        print(f"plan {name}: not in the file: {'; '.join(answer['lost']) or 'nothing'}")
    names = [one["schedule"] for one in json.loads(run_weft(weft, "schedule", "list", "--format", "json", folder=folder))]
    for name in names:
        for stages, micro_batches in SCHEDULE_SIZES:
            for form in ("compute_only", "compute_comms"):
                file = f"schedule_{name}.{stages}.{micro_batches}.{form}.csv"
                done = subprocess.run([weft, "schedule", "export", name, "--stages", str(stages), "--micro-batches",
                                       str(micro_batches), "--torch", form, "-o", file], cwd=folder, capture_output=True,
                                      text=True)
                # Only DualPipe has no CSV.
                assert (done.returncode == 0) == (name != "dualpipe"), f"{name}: {done.stderr}"
    os.remove(os.path.join(folder, "gpt.onnx"))


def imported(path):
    spec = importlib.util.spec_from_file_location("weft_plan", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def compare(found, expected, what):
    difference = (found.detach() - expected).abs().max().item()
    limit = TOLERANCE * max(1.0, expected.abs().max().item())
    assert difference <= limit, f"{what}: differs by {difference:.2e}, at most {limit:.2e} allowed"


def compare_gradients(parts, expected):
    """Returns the names of the compared parameters."""
    names = []
    for part in parts:
        for name, parameter in part.named_parameters():
            name = name.replace("_checkpoint_wrapped_module.", "")
            assert parameter.grad is not None, f"{name} has no gradient"
            compare(whole(parameter.grad), expected[name], f"the gradient of {name}")
            names.append(name)
    return names


def run_plan(path, rank):
    """One training step of the planned model on this rank."""
    import torch
    import torch.distributed as dist

    made = runpy.run_path(os.path.join(HERE, "staged_gpt.py"))
    model, loss, (x,), (y,) = made["model"], made["loss"], made["inputs"], made["targets"]
    reference = loss(model(x), y)
    reference.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    reference = reference.detach()
    plan = imported(path)
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    mesh = plan.mesh(device)
    model, x, y = model.to(device), x.to(device), y.to(device)
    reference, expected = reference.to(device), {name: one.to(device) for name, one in expected.items()}
    # The rows of the batch that this data-parallel rank trains.
    replicas, place = 1, 0
    for dim in ("dp_replicate", "dp_shard"):
        if dim in plan.MESH:
            replicas, place = replicas * plan.MESH[dim], place * plan.MESH[dim] + mesh[dim].get_local_rank()
    x, y = x.chunk(replicas)[place], y.chunk(replicas)[place]
    if "pp" not in plan.MESH:
        parts, schedule = plan.apply(model, mesh)
        assert schedule is None
        found = loss(parts[0](x), y)
        found.backward()
        losses = [found.detach()]
    else:
        parts, schedule = plan.apply(model, mesh, loss)
        losses = [one.detach() for one in plan.step(schedule, x, y)]
    if losses:
        mean = torch.stack(losses).mean()
        # The replicas' mean: ranks of other mesh dims hold the same loss.
        for dim in ("dp_replicate", "dp_shard"):
            if dim in plan.MESH:
                dist.all_reduce(mean, group=mesh.get_group(dim))
                mean /= plan.MESH[dim]
        compare(mean, reference, "the loss")
    names = compare_gradients(parts, expected)
    return {"names": names, "all": list(expected), "losses": len(losses)}


def run_schedule(path, rank):
    """One step of a schedule's CSV over stages of one linear map each."""
    import torch
    from torch import nn
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    import torch.distributed as dist

    device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
    form = path.split(".")[-2]
    rows = open(path).read().strip().splitlines()
    owners = {int(stage): owner for owner, row in enumerate(rows) for stage in re.findall(r"(\d+)[FIBW]\d", row)}
    micro_batches = 1 + max(int(one) for row in rows for one in re.findall(r"\d+F(\d+)", row))
    torch.manual_seed(3)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in owners))
    # Rows differ, so that a loss or gradient of another micro-batch is noticed.
    x = torch.randn(2 * micro_batches, 6) * torch.arange(1, 2 * micro_batches + 1).unsqueeze(1)
    y = torch.randn(2 * micro_batches, 6)
    loss = nn.MSELoss()
    reference = loss(model(x), y)
    reference.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model, x, y, reference = model.to(device), x.to(device), y.to(device), reference.detach().to(device)
    expected = {name: gradient.to(device) for name, gradient in expected.items()}
    own = [stage for stage, owner in sorted(owners.items()) if owner == rank]
    stages = [PipelineStage(model[stage], stage, len(owners), device) for stage in own]
    schedule = _PipelineScheduleRuntime(stages, micro_batches, loss_fn=loss)
    schedule._load_csv(path, format=form)
    losses = []
    first, last = 0 in own, len(owners) - 1 in own
    schedule.step(*((x,) if first else ()), target=y if last else None, losses=losses if last else None)
    if last:
        compare(torch.stack(losses).mean(), reference, "the loss")
    names = []
    for stage in own:
        for name, parameter in model[stage].named_parameters():
            compare(parameter.grad, expected[f"{stage}.{name}"], f"the gradient of {stage}.{name}")
            names.append(f"{stage}.{name}")
    return {"names": names, "all": list(expected), "losses": len(losses)}


def skip_messages_to_self():
    """Keeps PyTorch's first exchange between stages off a rank's connection to itself, which Gloo lacks.

    In a V-shaped schedule two neighbouring stages are on one rank. PyTorch moves their activations without
    messages, but its first exchange, which opens connections, includes them.
    """
    from torch.distributed.pipelining import PipelineStage

    every = getattr(PipelineStage, "_get_init_p2p_neighbors_ops", None)
    if every is None:
        return  # removed in a later PyTorch

    def others(stage):
        return [op for op in every(stage) if op.group_peer != stage.group_rank]

    PipelineStage._get_init_p2p_neighbors_ops = others


def run_rank(path, rank, ranks, store, answer):
    import torch
    import torch.distributed as dist
    import datetime

    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("PLAN_BACKEND", "gloo"), init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=SECONDS // 2))
    if dist.get_backend() == "gloo":
        skip_messages_to_self()
    run = run_plan if path.endswith(".py") else run_schedule
    with open(answer, "w") as file:
        json.dump(run(path, rank), file)
    dist.barrier()
    dist.destroy_process_group()


def ranks_of(path):
    if path.endswith(".csv"):
        return len(open(path).read().strip().splitlines())
    ranks = 1
    for size in imported(path).MESH.values():
        ranks *= size
    return ranks


def wait_for(processes, logs):
    """Waits until all ranks exit. Returns the log of the rank that failed first, or an empty string.

    The other ranks wait for the failed one, or report the closed connection: they are killed.
    """
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        codes = [process.poll() for process in processes]
        failed = [rank for rank, code in enumerate(codes) if code]
        if not failed and None not in codes:
            return ""
        if failed:
            break
        time.sleep(0.02)
    else:
        failed = [rank for rank, code in enumerate(codes) if code is None]
    for process in processes:
        process.kill()
        process.wait()
    # A crash leaves no traceback. A closed connection is the consequence of another rank's failure.
    texts = {rank: open(logs[rank]).read().strip() for rank in failed}
    rank = min(failed, key=lambda one: ("Connection closed by peer" in texts[one], one))
    code = "no exit" if codes[rank] is None else f"exit {codes[rank]}"
    return f"rank {rank}: {code}\n" + "\n".join(texts[rank].splitlines()[-25:])


def run_case(path):
    """Runs all ranks of a file. Returns what failed, or an empty string."""
    ranks = ranks_of(path)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        answers = [os.path.join(folder, f"rank{rank}.json") for rank in range(ranks)]
        logs = [os.path.join(folder, f"rank{rank}.log") for rank in range(ranks)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
        processes = [
            subprocess.Popen([sys.executable, os.path.abspath(__file__), "--rank", str(rank), str(ranks), path, store,
                              answers[rank]], stdout=open(logs[rank], "w"), stderr=subprocess.STDOUT,
                             # NCCL takes ranks on one GPU for ranks of different hosts.
                             env={**environment, "NCCL_HOSTID": f"rank{rank}"})
            for rank in range(ranks)]
        why = wait_for(processes, logs)
        if why:
            return why
        results = [json.load(open(answer)) for answer in answers]
        compared = {name for result in results for name in result["names"]}
        if compared != set(results[0]["all"]):
            return f"not compared: {sorted(set(results[0]['all']) - compared)}"
        return "" if any(result["losses"] for result in results) else "no rank has a loss"


def execute(folder, only):
    paths = sorted(glob.glob(os.path.join(folder, "plan_*.py")) + glob.glob(os.path.join(folder, "schedule_*.csv")))
    paths = [path for path in paths if re.search(only, os.path.basename(path))]
    assert paths, f"no files in {folder}"
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 3)) as pool:
        for path, why in zip(paths, pool.map(run_case, paths)):
            print(f"{'FAILED' if why else 'ok    '} {os.path.basename(path)}", flush=True)
            if why:
                print("    " + why.replace("\n", "\n    "), flush=True)
            failed += bool(why)
    print(f"{len(paths) - failed} of {len(paths)} files equal one process")
    return 1 if failed else 0


def compile_all(folder):
    for path in glob.glob(os.path.join(folder, "plan_*.py")):
        compile(open(path).read(), path, "exec")


def check_names(folder):
    """A module is found by the plan's name of its tensor; one that computes several tensors is refused."""
    from torch import nn

    def model(**layer):
        blocks = nn.ModuleList(nn.ModuleDict({name: nn.Linear(4, 4) for name in layer["names"]}) for _ in range(4))
        return nn.ModuleDict({"blocks": blocks})

    path = os.path.join(folder, "plan_tp2.py")
    plan = imported(path)
    plan.TENSOR = {"*.q_weight": "colwise", "*.o_weight": "rowwise"}
    assert plan._styles_of(model(names=["q", "o"]), "blocks", {}) == {"*.q": "colwise", "*.o": "rowwise"}
    assert plan._styles_of(model(names=["query", "o"]), "blocks", {"q_weight": "query"}) == {"*.query": "colwise", "*.o": "rowwise"}
    refused(lambda: plan._styles_of(model(names=["query", "o"]), "blocks", {}), "expected a module for the plan's tensor *.q_weight")
    refused(lambda: plan._styles_of(model(names=["q"]), "blocks", {"o_weight": "q"}), "found several for *.q")
    # One product for queries, keys and values: python -m weft.export takes it apart.
    plan.TENSOR = {f"*.qkv_weight_{part}": "colwise" for part in range(3)}
    refused(lambda: plan._styles_of(model(names=["qkv"]), "blocks", {}), "*.qkv computes several tensors of the plan")


def refused(call, why):
    try:
        call()
    except ValueError as error:
        assert why in str(error), f"expected {why!r}, found {error}"
        return
    raise AssertionError(f"not refused: {why}")


def too_old():
    try:
        import torch
    except ImportError as error:
        return str(error)
    version = tuple(int(one) for one in torch.__version__.split("+")[0].split(".")[:2])
    return "" if version >= (2, 6) else f"expected torch 2.6 or later, found {torch.__version__}"


def main():
    if sys.argv[1:2] == ["--rank"]:
        rank, ranks, path, store, answer = sys.argv[2:]
        try:
            run_rank(path, int(rank), int(ranks), store, answer)
        except Exception:
            traceback.print_exc()
            sys.stdout.flush()
            os._exit(1)  # at once: the process group may wait for other ranks
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("--read", metavar="FOLDER")
    parser.add_argument("--only", default="", help="a regular expression for names of files")
    asked = parser.parse_args()
    if importlib.util.find_spec("torch") is None:  # weft.export writes the model
        print("skipped: no torch")
        return 77
    if asked.write:
        os.makedirs(asked.write, exist_ok=True)
        write(os.environ["WEFT"], asked.write)
        compile_all(asked.write)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if not asked.read:
            write(os.environ["WEFT"], folder)
            check_names(folder)
        compile_all(asked.read or folder)
        if why := too_old():
            print(f"skipped: {why}")
            return 77
        return execute(asked.read or folder, asked.only)


if __name__ == "__main__":
    sys.exit(main())
