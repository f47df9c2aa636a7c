#!/usr/bin/env python3
"""Training steps of Weft and PyTorch on this machine's GPU, in one run.

  bench/gpu.py build/release/weft [--models gpt2,bert,llama,resnet,moe,mlp] [--steps 30] [--compile gpt2] [--precision bf16]

Weft trains on a text of bytes or on random arrays (TRAIN .. ON GPU .. log). PyTorch runs the same model on
random inputs with autocast, fused Adam and its own attention, eagerly and with torch.compile. A step's time is
the median of the last two thirds. Memory is the peak of each on the device, including libraries and contexts, as
reported by the driver. `issued` is the time in which the host submits a step to the device; for Weft this is one
launch of a recorded step.
"""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MODELS = {
    "gpt2": dict(name="gpt2", sizes=dict(b=16, s=1024)),
    "mlp": dict(name="wide_mlp", sizes=dict(b=16, s=1024, d=2048, f=8192, layers=4)),
    "llama": dict(name="llama3_8b", sizes=dict(b=4, s=2048, d=2048, h=8, g=4, e=64, f=5632, layers=16, v=32000)),
    "bert": dict(name="bert_words", sizes=dict(b=16, s=512)),
    "resnet": dict(name="resnet50", sizes=dict(b=64)),
    "moe": dict(name="mixtral_8x7b", sizes=dict(b=8, s=1024, d=1024, h=4, g=4, f=3584, layers=8, v=32000)),
}
# BERT large with a loss over its vocabulary.
BERT_WORDS = """CREATE MODEL bert_words (b = 16, s = 512, d = 1024, h = 16, layers = 24, v = 30522, p = 512)
  INPUT tokens[b, s] OF int32, targets[b, s] OF int32
  PARAMETER word[v, d] INIT normal(0, 0.02), place[p, d] INIT normal(0, 0.02), ln_gain[d] INIT ones, ln_bias[d]
AS WITH
  summed AS (SELECT word + place FROM tokens JOIN word ON v = tokens JOIN place ON p = s),
  x      AS (SELECT layer_norm(summed, epsilon => 1e-12) OVER (PARTITION BY b, s) * ln_gain + ln_bias
             FROM summed, ln_gain, ln_bias),
  mask   AS (SELECT tokens >= 0 FROM tokens),
  REPEAT layers TIMES x AS (SELECT * FROM bert_block(x, mask, h = h)),
  logits AS (SELECT sum(x * word) FROM x, word GROUP BY b, s, v)
SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets;
"""
# Residual blocks of two products each, on bytes.
WIDE_MLP = """CREATE LAYER wide_block(x[b, s, d]) (b = 1, s = 1, d = 2048, f = 8192)
  PARAMETER up[d, f] INIT normal(0, 0.02), down[f, d] INIT normal(0, 0.02)
AS WITH h AS (SELECT relu(sum(x * up)) FROM x, up GROUP BY b, s, f)
SELECT x + sum(h * down) FROM x, h, down GROUP BY b, s, d;
CREATE MODEL wide_mlp (b = 16, s = 1024, d = 2048, f = 8192, layers = 4, v = 256)
  INPUT tokens[b, s] OF int32, targets[b, s] OF int32
  PARAMETER embed[v, d] INIT normal(0, 0.02), head[d, v] INIT normal(0, 0.02)
AS WITH
  x      AS (SELECT embed FROM tokens JOIN embed ON v = tokens),
  REPEAT layers TIMES x AS (SELECT * FROM wide_block(x, f = f)),
  logits AS (SELECT sum(x * head) FROM x, head GROUP BY b, s, v)
SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets;
"""


class Memory:
    """Peak increase of the device's memory in use while it is active."""
    @staticmethod
    def used():
        asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"],
                               capture_output=True, text=True)
        return int(asked.stdout.split()[0]) if asked.returncode == 0 and asked.stdout.split() else 0

    def __enter__(self):
        self.before, self.most, self.done = self.used(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.done.wait(0.2):
            self.most = max(self.most, self.used())

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def __str__(self):
        return f"{max(self.most - self.before, 0) / 1024:.1f} GiB"


def middle(seconds):
    return statistics.median(seconds[len(seconds) // 3:])


def data_of(model, folder):
    """The FROM clause: files in the folder."""
    def array(name, values):
        import numpy
        file = os.path.join(folder, name + ".npy")
        numpy.save(file, values)
        return f"{name} = '{file}'"
    if model["name"] in ("resnet50", "bert_words"):
        import numpy
        draw = numpy.random.default_rng(0)
        rows = 2 * model["sizes"]["b"]
        if model["name"] == "resnet50":
            return ", ".join([array("image", draw.standard_normal((rows, 3, 224, 224), dtype=numpy.float32)),
                              array("label", draw.integers(0, 1000, rows, dtype=numpy.int32))])
        words = draw.integers(0, 30522, (rows, 512), dtype=numpy.int32)
        return ", ".join([array("tokens", words), array("targets", words)])
    text = os.path.join(folder, "text.txt")
    with open(text, "wb") as file:
        file.write(bytes((i * 7919 + i // 13 * 31) % 251 for i in range(1 << 20)))
    return f"'{text}'"


def run_weft(weft, model, steps, precision, folder):
    log = os.path.join(folder, "log.csv")
    sizes = ", ".join(f"{name} = {size}" for name, size in model["sizes"].items())
    script = {"wide_mlp": WIDE_MLP, "bert_words": BERT_WORDS}.get(model["name"], "")
    script += (f"TRAIN {model['name']} ON GPU FROM {data_of(model, folder)} STEPS {steps} "
               f"WITH ({sizes}, precision = {precision}, learning_rate = 0.0001, log = '{log}');\n")
    file = os.path.join(folder, "bench.weft")
    with open(file, "w") as out:
        out.write(script)
    began = time.time()
    with Memory() as memory:
        done = subprocess.run([weft, "run", file], capture_output=True, text=True)
    if done.returncode != 0:
        return None, (done.stderr or done.stdout).strip()
    rows = list(csv.DictReader(open(log)))
    at = [float(row["seconds"]) for row in rows]
    note = f"{memory}, loss {float(rows[0]['loss']):.3f} to {float(rows[-1]['loss']):.3f}, first step after {time.time() - began - at[-1]:.1f} s"
    return middle([b - a for a, b in zip(at, at[1:])]), note


def torch_model(key, sizes):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    z = dict(sizes)

    class GptBlock(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.h = h
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, s, d = x.shape
            q, k, v = (t.view(b, s, self.h, d // self.h).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(d, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, s, d))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            d, v = 768, 50257
            self.wte, self.wpe = nn.Embedding(v, d), nn.Embedding(1024, d)
            self.blocks = nn.ModuleList(GptBlock(d, 12) for _ in range(12))
            self.lnf = nn.LayerNorm(d)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            return F.linear(self.lnf(x), self.wte.weight)

    class WideMlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(256, z["d"])
            self.up = nn.ModuleList(nn.Linear(z["d"], z["f"], bias=False) for _ in range(z["layers"]))
            self.down = nn.ModuleList(nn.Linear(z["f"], z["d"], bias=False) for _ in range(z["layers"]))
            self.head = nn.Linear(z["d"], 256, bias=False)

        def forward(self, tokens):
            x = self.embed(tokens)
            for up, down in zip(self.up, self.down):
                x = x + down(F.relu(up(x)))
            return self.head(x)

    class LlamaBlock(nn.Module):
        def __init__(self):
            super().__init__()
            d, e, keys = z["d"], z["e"], z["h"]
            self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
            self.q, self.kv = nn.Linear(d, keys * z["g"] * e, bias=False), nn.Linear(d, 2 * keys * e, bias=False)
            self.out = nn.Linear(keys * z["g"] * e, d, bias=False)
            self.gate, self.up = nn.Linear(d, z["f"], bias=False), nn.Linear(d, z["f"], bias=False)
            self.down = nn.Linear(z["f"], d, bias=False)

        def forward(self, x, cosine, sine):
            b, s, d = x.shape
            e, keys = z["e"], z["h"]
            n = self.n1(x)

            def turned(t):
                first, second = t.chunk(2, -1)
                return (t * cosine + torch.cat((-second, first), -1) * sine).to(t.dtype)
            q = turned(self.q(n).view(b, s, keys * z["g"], e).transpose(1, 2))
            k, v = self.kv(n).view(b, s, 2 * keys, e).transpose(1, 2).chunk(2, 1)
            y = F.scaled_dot_product_attention(q, turned(k), v, is_causal=True, enable_gqa=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, s, -1))
            if hasattr(self, "experts"):
                return self.experts(x)
            n = self.n2(x)
            return x + self.down(F.silu(self.gate(n)) * self.up(n))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(z["v"], z["d"])
            self.blocks = nn.ModuleList(LlamaBlock() for _ in range(z["layers"]))
            self.norm, self.head = nn.RMSNorm(z["d"]), nn.Linear(z["d"], z["v"], bias=False)

        def forward(self, tokens):
            x = self.embed(tokens)
            angle = torch.outer(torch.arange(tokens.shape[1], device=x.device).float(),
                                500000.0 ** (-torch.arange(0, z["e"], 2, device=x.device).float() / z["e"]))
            cosine, sine = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
            for block in self.blocks:
                x = block(x, cosine, sine)
            return self.head(self.norm(x))

    class BertBlock(nn.Module):
        def __init__(self, d=1024, h=16):
            super().__init__()
            self.h = h
            self.ln1, self.ln2 = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x, mask):
            b, s, d = x.shape
            q, k, v = (t.view(b, s, self.h, d // self.h).transpose(1, 2) for t in self.qkv(x).split(d, 2))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.ln1(x + self.out(y.transpose(1, 2).reshape(b, s, d)))
            return self.ln2(x + self.down(F.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(30522, 1024), nn.Embedding(512, 1024)
            self.ln = nn.LayerNorm(1024, eps=1e-12)
            self.blocks = nn.ModuleList(BertBlock() for _ in range(24))

        def forward(self, tokens):
            mask = torch.ones(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool, device=tokens.device)
            x = self.ln(self.word(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device)))
            for block in self.blocks:
                x = block(x, mask)
            return F.linear(x, self.word.weight)

    class Experts(nn.Module):
        """Two of eight experts per token; each expert runs on the tokens that chose it, and none is dropped."""
        def __init__(self):
            super().__init__()
            d, f = z["d"], z["f"]
            self.norm, self.router = nn.RMSNorm(d), nn.Linear(d, 8, bias=False)
            self.gate, self.up = (nn.ModuleList(nn.Linear(d, f, bias=False) for _ in range(8)) for _ in range(2))
            self.down = nn.ModuleList(nn.Linear(f, d, bias=False) for _ in range(8))

        def forward(self, x):
            n = self.norm(x).flatten(0, 1)
            weight, chosen = self.router(n).float().topk(2, -1)
            weight = weight.softmax(-1).to(n.dtype)
            made = torch.zeros_like(n)
            for i in range(8):
                rows, which = torch.where(chosen == i)
                taken = n[rows]
                done = self.down[i](F.silu(self.gate[i](taken)) * self.up[i](taken))
                made.index_add_(0, rows, (done * weight[rows, which, None]).to(made.dtype))
            return x + made.view_as(x)

    class Mixtral(Llama):
        def __init__(self):
            z["e"] = z["d"] // (z["h"] * z["g"])
            super().__init__()
            for block in self.blocks:
                block.experts = Experts()
                del block.gate, block.up, block.down

    if key == "resnet":
        import torchvision
        return torchvision.models.resnet50()
    return {"gpt2": Gpt2, "mlp": WideMlp, "llama": Llama, "bert": Bert, "moe": Mixtral}[key]()


def run_torch(key, model, steps, precision, compiled):
    import torch
    import torch.nn.functional as F
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    sizes = model["sizes"]
    vocabulary = {"gpt2": 50257, "mlp": 256, "bert": 30522}.get(key, sizes.get("v"))
    net = torch_model(key, sizes).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)
    narrow = {"bf16": torch.bfloat16, "f16": torch.float16}.get(precision)

    def loss_of(tokens, targets):
        with torch.autocast("cuda", dtype=narrow or torch.bfloat16, enabled=narrow is not None):
            logits = net(tokens)
            return F.cross_entropy(logits.flatten(0, -2), targets.flatten())
    call = torch.compile(loss_of) if compiled else loss_of
    if key == "resnet":
        tokens = torch.randn(sizes["b"], 3, 224, 224, device="cuda")
        targets = torch.randint(1000, (sizes["b"],), device="cuda")
    else:
        tokens = torch.randint(vocabulary, (sizes["b"], sizes["s"]), device="cuda")
        targets = torch.randint(vocabulary, (sizes["b"], sizes["s"]), device="cuda")
    seconds, issued = [], []
    for _ in range(steps):
        torch.cuda.synchronize()
        began = time.time()
        optimizer.zero_grad(set_to_none=True)
        call(tokens, targets).backward()
        optimizer.step()
        issued.append(time.time() - began)
        torch.cuda.synchronize()
        seconds.append(time.time() - began)
    return middle(seconds), f"issued in {middle(issued) * 1e3:.1f} ms"


def main():
    args = argparse.ArgumentParser()
    args.add_argument("weft")
    args.add_argument("--models", default="gpt2,bert,llama,resnet,moe,mlp")
    args.add_argument("--compile", default="gpt2,bert,llama,resnet,moe,mlp")
    args.add_argument("--steps", type=int, default=30)
    args.add_argument("--precision", default="bf16")
    args.add_argument("--torch", help=argparse.SUPPRESS)  # one measurement, in a process of its own
    given = args.parse_args()
    if given.torch:
        key, compiled = given.torch.split(",")
        print(*run_torch(key, MODELS[key], given.steps, given.precision, compiled == "compiled"), sep="\t")
        return 0
    print(f"{'model':8}{'':10}{'a step':>12}   {'of Weft':>8}   {given.precision}")
    for key in given.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            ours, note = run_weft(given.weft, MODELS[key], given.steps, given.precision, folder)
        if ours is None:
            print(f"{key:8}{'Weft':10}fails: {note}", flush=True)
        else:
            print(f"{key:8}{'Weft':10}{ours * 1e3:9.2f} ms   {'':8}   {note}", flush=True)
        for kind in ["eager"] + (["compiled"] if key in given.compile.split(",") else []):
            with Memory() as memory:
                done = subprocess.run([sys.executable, __file__, given.weft, "--steps", str(given.steps), "--precision",
                                       given.precision, "--torch", f"{key},{kind}"], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{key:8}{kind:10}fails: {done.stderr.strip().splitlines()[-1:]}", flush=True)
                continue
            seconds, note = done.stdout.strip().splitlines()[-1].split("\t")
            ratio = f"{float(seconds) / ours:7.2f}x" if ours else ""
            print(f"{key:8}{kind:10}{float(seconds) * 1e3:9.2f} ms   {ratio:>8}   {memory}, {note}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
