#!/usr/bin/python3
"""PyTorch's side of the training benchmark: the same models, trained on demand.

  torch_training.py MODEL THREADS

  out  {"ready": true, "torch": "1.13.0a0", "threads": 1, "parameters": 9610}
  in   steps 20
  out  {"seconds": 0.0159, "loss": 1.5961}     the wall time of 20 steps, the loss of the last one
  in   quit

A step is forward, backward and Adam (lr 1e-3) on the next of a few batches that already lie in memory.
Sizes and initial spreads are those of models/MODEL.weft; README.md beside this file says why each model
is written the way it is.
"""

import itertools
import json
import math
import os
import sys
import time

MODELS = ("digits_mlp", "digits_conv", "char_gpt", "char_gpt_tuned")


def arguments():
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS or not sys.argv[2].isdigit() or int(sys.argv[2]) < 1:
        sys.exit(f"usage: torch_training.py {'|'.join(MODELS)} THREADS")
    return sys.argv[1], int(sys.argv[2])


model_name, threads = arguments()

# OpenBLAS and OpenMP read these once, when they are loaded; torch.set_num_threads reaches only OpenMP.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(threads)

try:
    import torch
except ImportError as error:
    print(json.dumps({"ready": False, "reason": str(error)}), flush=True)
    sys.exit(1)

from torch import nn
from torch.nn import functional as F

torch.set_num_threads(threads)


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
    def __init__(self):
        super().__init__()
        self.hidden = linear(64, 128, 0.18)
        self.out = linear(128, 10, 0.12)

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

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        context = self.attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.mix(context)
        return x + self.down(self.activation(self.up(self.norm2(x))))


class TunedGptBlock(GptBlock):
    """The same block without tanh, which this PyTorch computes one number at a time on Arm."""

    def activation(self, x):
        # (1 + tanh(u)) / 2 = sigmoid(2 u), and the exponential in sigmoid is vectorized.
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


def digit_batches(count=16, batch=64):
    """Ten fixed patterns under noise: as large as the digits, and as learnable."""
    patterns = torch.randint(0, 17, (10, 64)).float()
    for _ in range(count):
        labels = torch.randint(0, 10, (batch,))
        noise = torch.randint(-4, 5, (batch, 64)).float()
        yield (patterns[labels] + noise).clamp(0, 16), labels


def token_batches(count=4, batch=8, length=256):
    """Text in which each byte leaves four choices for the next."""
    for _ in range(count):
        text = torch.empty(batch, length + 1, dtype=torch.long)
        text[:, 0] = torch.randint(0, 256, (batch,))
        for position in range(length):
            text[:, position + 1] = (text[:, position] * 5 + torch.randint(0, 4, (batch,))) % 256
        yield text[:, :-1].contiguous(), text[:, 1:].flatten()


def build(name):
    """The model and its batches."""
    torch.manual_seed(1)
    if name.startswith("char_gpt"):
        block = TunedGptBlock if name == "char_gpt_tuned" else GptBlock
        return CharGpt(block), list(token_batches())
    batches = list(digit_batches())
    model = DigitsMlp() if name == "digits_mlp" else DigitsConv()
    # Tracing spares the small models some of Python's time; the GPT does not notice.
    return torch.jit.trace(model, batches[0][0]), batches


def main():
    # Debian's oneDNN has only reference kernels for Arm; without it bmm and conv2d go to the BLAS.
    torch.backends.mkldnn.set_flags(os.uname().machine != "aarch64")
    model, batches = build(model_name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    batches = itertools.cycle(batches)

    def answer(fields):
        print(json.dumps(fields), flush=True)

    def train(steps):
        for _ in range(steps):
            inputs, targets = next(batches)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        return loss.item()

    answer({
        "ready": True,
        "torch": torch.__version__,
        "threads": threads,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    })
    for line in sys.stdin:
        command, _, count = line.strip().partition(" ")
        if command == "quit":
            return
        if command != "steps" or not count.isdigit() or int(count) < 1:
            answer({"error": f"expected 'steps N' or 'quit', found '{line.strip()}'"})
            continue
        start = time.perf_counter()
        loss = train(int(count))
        answer({"seconds": time.perf_counter() - start, "loss": loss})


if __name__ == "__main__":
    main()
