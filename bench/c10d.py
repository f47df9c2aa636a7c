"""Times DDP training steps on the backends weft and gloo, alternating in one run.

    python3 bench/c10d.py                            2, 4 and 8 processes; MLP, ResNet-50 and GPT-2 small
    python3 bench/c10d.py --ranks 2,4 --models mlp --steps 5

Each process trains the same model twice, once per backend. The backends alternate step by step, and
the order changes every step. "alone" is the same step without communication (no_sync): the difference
is the exposed communication. Times are medians over steps, of the slowest process. Processes times
threads is at most the number of cores.
"""

import argparse
import datetime
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

MODELS = ("mlp", "resnet50", "gpt2")


def mlp(torch):
    nn = torch.nn
    layers = [nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024)]
    return nn.Sequential(*layers), (torch.randn(16, 1024), torch.randn(16, 1024)), nn.functional.mse_loss


def resnet50(torch):
    """torchvision's ResNet-50, or the same blocks if torchvision is missing."""
    nn = torch.nn
    try:
        import torchvision
        model = torchvision.models.resnet50(num_classes=1000)
    except ImportError:
        model = plain_resnet50(nn)
    return model, (torch.randn(4, 3, 96, 96), torch.randint(0, 1000, (4,))), nn.functional.cross_entropy


def plain_resnet50(nn):
    class Bottleneck(nn.Module):
        def __init__(self, inner, width, stride):
            super().__init__()
            outer = width * 4
            self.main = nn.Sequential(
                nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer))
            self.side = nn.Sequential() if inner == outer and stride == 1 else nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x):
            return nn.functional.relu(self.main(x) + self.side(x))

    layers, inner = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inner, 64 << stage, 2 if block == 0 and stage > 0 else 1))
            inner = (64 << stage) * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def gpt2(torch):
    """The shapes of GPT-2 small: 124 M parameters. A short sequence, so that communication shows."""
    nn, width, vocabulary, length = torch.nn, 768, 50257, 64

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
            layer = nn.TransformerEncoderLayer(width, 12, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            self.blocks = nn.TransformerEncoder(layer, 12, nn.LayerNorm(width))
            self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

        def forward(self, tokens):
            hidden = self.tokens(tokens) + self.positions.weight[:tokens.shape[1]]
            return self.blocks(hidden, self.mask) @ self.tokens.weight.t()

    tokens = torch.randint(0, vocabulary, (1, length))
    return Gpt2(), (tokens, tokens), lambda out, to: nn.functional.cross_entropy(out.flatten(0, 1), to.flatten())


def rank_main(rank, ranks, threads, name, steps, path, pipe):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import warnings
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed as dist
    import weft.torch  # noqa: F401
    torch.set_num_threads(threads)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=300))
    variants = {}
    for backend in ("weft", "gloo"):
        torch.manual_seed(1)
        model, batch, loss_of = {"mlp": mlp, "resnet50": resnet50, "gpt2": gpt2}[name](torch)
        group = dist.new_group(backend=backend)
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)
        variants[backend] = (model, torch.optim.SGD(model.parameters(), lr=1e-4), batch, loss_of)
    everyone = dist.new_group(backend="gloo")

    def step(backend, synchronize=True):
        model, optimizer, (inputs, targets), loss_of = variants[backend]
        dist.barrier(group=everyone)
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=False)
        if synchronize:
            loss = loss_of(model(inputs), targets)
            loss.backward()
        else:
            with model.no_sync():
                loss = loss_of(model(inputs), targets)
                loss.backward()
        optimizer.step()
        seconds = torch.tensor([time.perf_counter() - began])
        dist.all_reduce(seconds, dist.ReduceOp.MAX, group=everyone)
        return seconds.item(), loss.item()

    times, losses = {"weft": [], "gloo": [], "alone": []}, {"weft": [], "gloo": []}
    for number in range(steps + 2):
        for backend in (("weft", "gloo"), ("gloo", "weft"))[number % 2]:
            seconds, loss = step(backend)
            losses[backend].append(loss)
            if number >= 2:  # the first steps allocate and rebuild buckets
                times[backend].append(seconds)
    same = all(abs(a - b) <= 1e-4 * max(1.0, abs(b)) for a, b in zip(losses["weft"], losses["gloo"]))
    for _ in range(max(3, steps // 2)):
        times["alone"].append(step("weft", synchronize=False)[0])
    if rank == 0:
        pipe.send(({key: statistics.median(each) for key, each in times.items()}, same))
    dist.barrier(group=everyone)
    pipe.close()
    os._exit(0)


def measure(name, ranks, threads, steps, limit):
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = context.Pipe(duplex=False)
        processes = [context.Process(target=rank_main, args=(rank, ranks, threads, name, steps,
                                                             os.path.join(folder, "store"), theirs))
                     for rank in range(ranks)]
        for process in processes:
            process.start()
        theirs.close()
        try:
            if ours.poll(limit):
                return ours.recv()
            for process in processes:  # all at once: none reports the end of another
                process.kill()
            return f"not done after {limit:.0f} s"
        except EOFError:
            return "a process failed"
        finally:
            for process in processes:
                process.join(5)
                if process.is_alive():
                    process.kill()
                    process.join()


def main():
    parser = argparse.ArgumentParser(description="DDP steps on weft and gloo")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes")
    parser.add_argument("--models", default=",".join(MODELS), help="of " + ", ".join(MODELS))
    parser.add_argument("--steps", type=int, default=9, help="measured steps per backend")
    parser.add_argument("--limit", type=float, default=300, help="seconds per row")
    asked = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{'model':10}{'ranks':>6}{'threads':>8}{'weft ms':>10}{'gloo ms':>10}{'alone ms':>10}"
          f"{'gloo/weft':>11}{'exposed, gloo/weft':>20}  losses", flush=True)
    failed = False
    for name in asked.models.split(","):
        for ranks in map(int, asked.ranks.split(",")):
            threads = max(1, cores // ranks)
            result = measure(name, ranks, threads, asked.steps, asked.limit)
            if isinstance(result, str):
                failed = True
                print(f"{name:10}{ranks:6}{threads:8}  {result}", flush=True)
                continue
            times, same = result
            failed |= not same
            weft, gloo, alone = (times[key] * 1e3 for key in ("weft", "gloo", "alone"))
            exposed = f"{(gloo - alone) / (weft - alone):.1f}" if weft - alone > 0.02 * alone else "hidden"
            print(f"{name:10}{ranks:6}{threads:8}{weft:10.1f}{gloo:10.1f}{alone:10.1f}{gloo / weft:11.2f}{exposed:>20}"
                  f"  {'equal' if same else 'DIFFERENT'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
