#!/usr/bin/python3
"""PyTorch's side of the training benchmark: the same models, trained on demand.

  torch_training.py MODEL THREADS [RANKS]       MODEL char_gpt_stages: ranks are stages, 4 micro-batches

  out  {"ready": true, "torch": "1.13.0a0", "threads": 1, "parameters": 9610, "processes": [4711]}
  in   steps 20
  out  {"seconds": 0.0159, "loss": 1.5961}     the wall time of 20 steps, the loss of the last one
  in   quit

A step is forward, backward and Adam (lr 1e-3) on the next of a few batches in memory. With several RANKS, each is
a process that trains on its rows of the batch, with DistributedDataParallel over Gloo. This process is rank 0 and
starts and controls the others. For char_gpt_stages, the tuned GPT's layers are split over the ranks in stages, and
micro-batches run in 1F1B order with messages over Gloo. Sizes and initial deviations are those of
models/MODEL.weft. README.md in this folder explains why each model is written as it is.
"""

import itertools
import math
import os
import subprocess
import sys
import tempfile

import on_demand

MODELS = ("digits_mlp", "large_mlp", "digits_conv", "char_gpt", "char_gpt_tuned", "char_gpt_bf16", "char_gpt_stages")
MICRO_BATCHES = 4


def arguments():
    """The model, threads and ranks; for a rank started by rank 0, also its number and the rendezvous file."""
    numbers = sys.argv[2:5]
    if not 3 <= len(sys.argv) <= 6 or sys.argv[1] not in MODELS or not all(n.isdigit() for n in numbers):
        sys.exit(f"usage: torch_training.py {'|'.join(MODELS)} THREADS [RANKS]")
    threads, ranks, rank = (int(n) for n in numbers + ["1", "0"][len(numbers) - 1:])
    return sys.argv[1], max(threads, 1), max(ranks, 1), rank, sys.argv[5] if len(sys.argv) == 6 else None


model_name, threads, ranks, rank, meeting = arguments()

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
torch = on_demand.import_torch(threads)

from torch import nn
from torch.nn import functional as F


def linear(inputs, outputs, spread):
    """A linear layer whose weights start as normal(0, spread) and whose biases start at zero."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, 0, spread)
    nn.init.zeros_(layer.bias)
    return layer


def convolution(inputs, outputs, spread):
    layer = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
    nn.init.normal_(layer.weight, 0, spread)
    nn.init.zeros_(layer.bias)
    return layer


class DigitsMlp(nn.Module):
    def __init__(self, pixels=64, width=128):
        super().__init__()
        self.hidden = linear(pixels, width, 0.18)
        self.out = linear(width, 10, 0.12)

    def forward(self, pixels):
        return self.out(F.relu(self.hidden(pixels / 16)))


class DigitsConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = convolution(1, 16, 0.4)
        self.second = convolution(16, 32, 0.12)
        self.out = linear(128, 10, 0.1)

    def forward(self, pixels):
        image = (pixels / 16).view(-1, 1, 8, 8)
        x1 = F.max_pool2d(F.relu(self.first(image)), 2)
        x2 = F.max_pool2d(F.relu(self.second(x1)), 2)
        return self.out(x2.flatten(1))


class GptBlock(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.norm1 = nn.LayerNorm(width)
        self.qkv = linear(width, 3 * width, 0.02)
        self.mix = linear(width, width, 0.02)
        self.norm2 = nn.LayerNorm(width)
        self.up = linear(width, 4 * width, 0.02)
        self.down = linear(4 * width, width, 0.02)
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1))

    def attention(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * self.scale
        return F.softmax(scores.masked_fill(self.future, -math.inf), dim=-1) @ v

    def activation(self, x):
        return F.gelu(x, approximate="tanh")

    def first_half(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        context = self.attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        return x + self.mix(context)

    def second_half(self, x):
        return x + self.down(self.activation(self.up(self.norm2(x))))

    def forward(self, x):
        return self.second_half(self.first_half(x))


class TunedGptBlock(GptBlock):
    """The same block without tanh, which this PyTorch does not vectorize on Arm."""

    def activation(self, x):
        # (1 + tanh(u)) / 2 = sigmoid(2 u), whose exponential is vectorized.
        slope = 2 * math.sqrt(2 / math.pi)
        return x * torch.sigmoid(x * (slope + slope * 0.044715 * x * x))


class CharGpt(nn.Module):
    def __init__(self, block, layers=6, width=384, heads=6, length=256, vocabulary=256):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.tokens.weight, 0, 0.02)
        nn.init.normal_(self.positions, 0, 0.02)
        self.blocks = nn.Sequential(*(block(width, heads, length) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.blocks(self.tokens(tokens) + self.positions)
        return F.linear(self.norm(x), self.tokens.weight).flatten(0, 1)


class GptStage(nn.Module):
    """This rank's half blocks. The first stage also has the embedding, the last one a copy of it as the head."""

    def __init__(self, whole):
        super().__init__()
        halves = [half for block in whole.blocks for half in ((block, "first_half"), (block, "second_half"))]
        mine = halves[len(halves) * rank // ranks:len(halves) * (rank + 1) // ranks]
        # Both halves of a block have all its parameters; those of the other half get no gradient.
        self.blocks = nn.ModuleList(dict.fromkeys(block for block, _ in mine))
        self.steps = [getattr(block, half) for block, half in mine]
        self.is_first, self.is_last = rank == 0, rank == ranks - 1
        if self.is_first:
            self.tokens, self.positions = whole.tokens, whole.positions
        if self.is_last:
            self.norm = whole.norm
            self.head = whole.tokens.weight if self.is_first else nn.Parameter(whole.tokens.weight.detach().clone())

    def forward(self, x):
        if self.is_first:
            x = self.tokens(x) + self.positions
        for step in self.steps:
            x = step(x)
        return F.linear(self.norm(x), self.head).flatten(0, 1) if self.is_last else x


class OneForwardOneBackward:
    """A step of a stage: one warm-up F per later stage, then B and F alternate."""

    def __init__(self, stage, width):
        self.stage, self.width = stage, width
        self.under_way = []

    def send(self, tensor, to, tag):
        self.under_way.append((torch.distributed.isend(tensor, to, tag=tag), tensor))

    def receive(self, shape, source, tag):
        tensor = torch.empty(shape)
        torch.distributed.recv(tensor, source, tag=tag)
        return tensor

    def forward(self, k):
        inputs, targets = self.inputs[k], self.targets[k]
        x = inputs if self.stage.is_first else self.receive((*inputs.shape, self.width), rank - 1, 2 * k).requires_grad_()
        y = self.stage(x)
        if self.stage.is_last:
            y = F.cross_entropy(y, targets.flatten()) / len(self.inputs)
            self.loss += y.item()
        else:
            self.send(y.detach(), rank + 1, 2 * k)
        self.in_flight.append((x, y))

    def backward(self, k):
        x, y = self.in_flight.pop(0)
        if self.stage.is_last:
            y.backward()
        else:
            y.backward(self.receive(y.shape, rank + 1, 2 * k + 1))
        if not self.stage.is_first:
            self.send(x.grad, rank - 1, 2 * k + 1)

    def run(self, inputs, targets):
        self.inputs, self.targets = inputs.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES)
        self.in_flight, self.loss = [], 0.0
        count = len(self.inputs)
        ahead = min(ranks - rank - 1, count)
        for k in range(ahead):
            self.forward(k)
        for k in range(count):
            if ahead + k < count:
                self.forward(ahead + k)
            self.backward(k)
        self.tie()
        for work, _ in self.under_way:
            work.wait()
        self.under_way.clear()
        return self.loss

    def tie(self):
        """Embedding and head are a tied parameter: both ends sum their gradients."""
        if ranks == 1 or not (self.stage.is_first or self.stage.is_last):
            return
        own, other = (self.stage.tokens.weight, ranks - 1) if self.stage.is_first else (self.stage.head, 0)
        tag = 2 * MICRO_BATCHES
        self.send(own.grad.clone(), other, tag)
        own.grad += self.receive(own.shape, other, tag)


def digit_batches(count=16, batch=64, pixels=64):
    """Ten fixed patterns with noise: as large as the digits, and as easy to learn."""
    patterns = torch.randint(0, 17, (10, pixels)).float()
    for _ in range(count):
        labels = torch.randint(0, 10, (batch,))
        noise = torch.randint(-4, 5, (batch, pixels)).float()
        yield (patterns[labels] + noise).clamp(0, 16), labels


def token_batches(count=4, batch=8, length=256):
    """Text in which each byte has four possible successors."""
    for _ in range(count):
        text = torch.empty(batch, length + 1, dtype=torch.long)
        text[:, 0] = torch.randint(0, 256, (batch,))
        for position in range(length):
            text[:, position + 1] = (text[:, position] * 5 + torch.randint(0, 4, (batch,))) % 256
        yield text[:, :-1].contiguous(), text[:, 1:].contiguous()


def my_rows(batch):
    """This rank's part of a batch."""
    rows = len(batch[0])
    mine = slice(rows * rank // ranks, rows * (rank + 1) // ranks)
    return batch[0][mine].contiguous(), batch[1][mine].flatten()


def build(name):
    """The model and its batches."""
    torch.manual_seed(1)
    if name == "char_gpt_stages":
        sizes = {"layers": 4, "width": 128, "heads": 4, "length": 64}
        return CharGpt(TunedGptBlock, **sizes), list(token_batches(length=64))
    if name.startswith("char_gpt"):
        block = TunedGptBlock if name == "char_gpt_tuned" else GptBlock
        return CharGpt(block), [my_rows(batch) for batch in token_batches()]
    large = name == "large_mlp"
    batches = digit_batches(4, 512, 784) if large else digit_batches()
    batches = [my_rows(batch) for batch in batches]
    model = DigitsConv() if name == "digits_conv" else DigitsMlp(784, 2048) if large else DigitsMlp()
    # Tracing reduces Python overhead for small models. It makes no difference for the GPT.
    return torch.jit.trace(model, batches[0][0]), batches


class OtherRanks:
    """The processes of ranks 1 and up, to which rank 0 forwards its commands; none with a single rank."""

    def __init__(self):
        self.processes = []
        if ranks == 1:
            return
        global meeting
        if rank == 0:
            meeting = os.path.join(tempfile.mkdtemp(), "meeting")
            for other in range(1, ranks):
                words = [sys.executable, __file__, model_name, str(threads), str(ranks), str(other), meeting]
                self.processes.append(
                    subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True))
        torch.distributed.init_process_group("gloo", f"file://{meeting}", world_size=ranks, rank=rank)

    def tell(self, line):
        for process in self.processes:
            process.stdin.write(line)
            process.stdin.flush()

    def meet(self):
        if ranks > 1:
            torch.distributed.barrier()

    def end(self):
        for process in self.processes:
            process.stdin.close()
            process.wait()
        if self.processes:
            for name in os.listdir(os.path.dirname(meeting)):
                os.remove(os.path.join(os.path.dirname(meeting), name))
            os.rmdir(os.path.dirname(meeting))


def main():
    others = OtherRanks()
    model, batches = build(model_name)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    schedule = None
    if model_name == "char_gpt_stages":
        model = GptStage(model)
        schedule = OneForwardOneBackward(model, width=128)
    elif ranks > 1:
        # Gloo cannot send booleans; the masks are the same on all ranks.
        masks = [name for name, buffer in model.named_buffers() if buffer.dtype == torch.bool]
        nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, masks)
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    batches = itertools.cycle(batches)

    def train(steps):
        for _ in range(steps):
            inputs, targets = next(batches)
            # DistributedDataParallel's gradients are views of its buckets and must be kept.
            optimizer.zero_grad(set_to_none=ranks == 1 or schedule is not None)
            if schedule is not None:
                loss = torch.tensor(schedule.run(inputs, targets))
                optimizer.step()
                continue
            # Parameters stay f32; under autocast, products use bf16, softmax and norms f32.
            with torch.autocast("cpu", torch.bfloat16, enabled=model_name.endswith("_bf16")):
                loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        if schedule is not None and ranks > 1:
            torch.distributed.broadcast(loss, ranks - 1)
        return {"loss": loss.item()}

    def begin(line):
        others.tell(line)
        others.meet()

    on_demand.serve({
        "torch": torch.__version__,
        "threads": threads,
        "parameters": parameters,
        "processes": [os.getpid()] + [process.pid for process in others.processes],
    }, train, begin)
    others.end()


if __name__ == "__main__":
    main()
