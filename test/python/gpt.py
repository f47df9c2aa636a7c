"""A small GPT that returns its loss, with a fused QKV projection and untied embeddings."""
import math
import torch
from torch import nn
from torch.nn import functional as F

class Attention(nn.Module):
    def __init__(self, d, heads, length):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(d, 3 * d)
        self.c_proj = nn.Linear(d, d)
        self.register_buffer("tril", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.c_attn(x).split(d, dim=2)
        q, k, v = (one.view(b, s, self.heads, d // self.heads).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.tril[:, :, :s, :s] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, s, d))

class Block(nn.Module):
    def __init__(self, d, heads, length):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d), Attention(d, heads, length), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))

class Gpt(nn.Module):
    def __init__(self, words=19, d=12, heads=3, length=7, layers=3):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads, length) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)

    def forward(self, tokens, labels):
        b, s = tokens.shape
        x = self.wte(tokens) + self.wpe(torch.arange(s))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


torch.manual_seed(1)
model = Gpt()
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.3)
inputs = (torch.randint(0, 19, (2, 7)), torch.randint(0, 19, (2, 7)))
