"""A small GPT that can be cut into stages: forward() skips modules that are None."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.size = d // heads
        self.wq, self.wk, self.wv = (nn.Linear(d, d) for _ in range(3))
        self.wo = nn.Linear(d, d)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (one(x).view(b, s, -1, self.size).transpose(1, 2) for one in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / self.size ** 0.5
        hidden = torch.ones(s, s, dtype=torch.bool, device=x.device).triu(1)
        y = F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v
        return self.wo(y.transpose(1, 2).reshape(b, s, -1))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, words=48, d=32, heads=4, length=16, layers=4):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)

    def forward(self, x):
        if self.words is not None:
            x = self.words(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) if self.head is not None else x


def loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


torch.manual_seed(1)
model = Gpt()
inputs = (torch.randint(0, 48, (8, 16)),)
targets = (torch.randint(0, 48, (8, 16)),)
