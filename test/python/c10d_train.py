"""Trains with DDP, ZeRO, FSDP2, HSDP, tensor parallelism and pipelining on gloo and on weft: equal losses.

    python3 test/python/c10d_train.py [--ranks 2,4] [--only ddp,fsdp2]

The training code is the same for both backends. A method that this torch does not have, or that fails
on gloo, is reported and not counted. The exit code is 1 if a loss differs or a method fails on weft
only, and 77 if torch is missing or the backend is not built.
"""

import argparse
import datetime
import sys
import warnings

SKIPPED = 77
STEPS, WIDTH = 5, 32

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

import c10d_processes
import weft.torch


class Absent(Exception):
    """This torch does not have the method."""


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def new_model(blocks=3):
    torch.manual_seed(3)
    return torch.nn.Sequential(*[Block(WIDTH) for _ in range(blocks)])


def batch(step, seed, rows=16):
    generator = torch.Generator().manual_seed(1000 * step + seed)
    inputs = torch.randn(rows, WIDTH, generator=generator)
    return inputs, inputs.roll(1, 1)


def train(model, optimizer, seed, transform=lambda x: x):
    losses = []
    for step in range(STEPS):
        inputs, targets = batch(step, seed)
        loss = torch.nn.functional.mse_loss(transform(model(inputs)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def ddp(rank, size):
    model = torch.nn.parallel.DistributedDataParallel(new_model(), bucket_cap_mb=0.02)
    return train(model, torch.optim.Adam(model.parameters(), lr=1e-2), rank)


def zero(rank, size):
    try:
        from torch.distributed.optim import ZeroRedundancyOptimizer
    except (ImportError, ValueError) as error:
        raise Absent(str(error)) from None
    model = torch.nn.parallel.DistributedDataParallel(new_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-2)
    return train(model, optimizer, rank)


def _mesh(*shape, names=None):
    try:
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError as error:
        raise Absent(str(error)) from None
    return init_device_mesh("cpu", shape, mesh_dim_names=names)


def _sharded(mesh, rank):
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError as error:
        raise Absent(str(error)) from None
    model = new_model()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train(model, torch.optim.Adam(model.parameters(), lr=1e-2), rank)


def fsdp2(rank, size):
    return _sharded(_mesh(size), rank)


def hsdp(rank, size):
    if size < 4:
        raise Absent("needs 4 ranks")
    return _sharded(_mesh(2, size // 2, names=("replicate", "shard")), rank)


def tensor_parallel(rank, size):
    mesh = _mesh(size)
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = new_model()
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return train(model, torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False), 0)


def dtensor(rank, size):
    """Redistributions between all placements."""
    mesh = _mesh(size)
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    full = torch.arange(float(size * size * 6)).reshape(size * 3, size * 2)
    sharded = distribute_tensor(full, mesh, [Shard(0)])
    seen = [sharded.redistribute(mesh, [Shard(1)]).to_local().sum().item(),
            sharded.redistribute(mesh, [Replicate()]).to_local().sum().item(), sharded.full_tensor().sum().item()]
    partial = type(sharded).from_local(full + rank, mesh, [Partial()])
    seen.append(partial.redistribute(mesh, [Replicate()]).to_local().sum().item())
    seen.append(partial.redistribute(mesh, [Shard(0)]).to_local().sum().item())
    return seen


def _pipelined(schedule_name, rank, size):
    try:
        from torch.distributed import pipelining
    except ImportError as error:
        raise Absent(str(error)) from None
    block = new_model(size)[rank]
    stage = pipelining.PipelineStage(block, rank, size, torch.device("cpu"))
    schedule = getattr(pipelining, schedule_name)(stage, 4 * size, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.Adam(block.parameters(), lr=1e-2)
    seen = []
    for step in range(STEPS):
        inputs, targets = batch(step, 0, 8 * size)
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        seen.append(sum(loss.item() for loss in losses))
    return seen


def gpipe(rank, size):
    return _pipelined("ScheduleGPipe", rank, size)


def one_f_one_b(rank, size):
    return _pipelined("Schedule1F1B", rank, size)


METHODS = [ddp, zero, fsdp2, hsdp, tensor_parallel, dtensor, gpipe, one_f_one_b]


def losses_of(method, backend, size):
    path = c10d_processes.fresh_path()

    def ranks(rank, size):
        torch.set_num_threads(1)
        dist.init_process_group(backend, init_method="file://" + path, rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=60))
        try:
            result = method(rank, size)
        except Absent as absent:
            result = str(absent)
        dist.destroy_process_group()
        return result

    try:
        return c10d_processes.run(size, ranks)
    except c10d_processes.RankFailed as failure:
        return str(failure)


def compare(method, size):
    """One line of the report, and whether it is a failure of weft."""
    theirs = losses_of(method, "gloo", size)
    if not isinstance(theirs, str) and isinstance(theirs[0], str):
        return f"absent: {theirs[0]}", False
    if isinstance(theirs, str):
        theirs_line = theirs.strip().splitlines()[-1]
        ours = losses_of(method, "weft", size)
        works = not isinstance(ours, str)
        return f"fails on gloo ({theirs_line}){', works on weft' if works else ', fails on weft'}", False
    ours = losses_of(method, "weft", size)
    if isinstance(ours, str):
        return f"FAILS on weft:\n{ours}", True
    for rank, (a, b) in enumerate(zip(ours, theirs)):
        if not torch.allclose(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-6):
            return f"DIFFERS on rank {rank}: weft {a}, gloo {b}", True
    exact = " (bitwise)" if ours == theirs else ""
    return f"equal{exact}: {', '.join(f'{loss:.5g}' for loss in ours[-1])}", False


def main():
    parser = argparse.ArgumentParser(description="equal losses on weft and gloo")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--only", default="", help="comma-separated: " + ", ".join(each.__name__ for each in METHODS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        weft.torch.load()
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)
    wrong = False
    for size in map(int, asked.ranks.split(",")):
        for method in METHODS:
            if asked.only and method.__name__ not in asked.only.split(","):
                continue
            line, is_wrong = compare(method, size)
            wrong |= is_wrong
            print(f"{method.__name__:16}{size} ranks  {line}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
