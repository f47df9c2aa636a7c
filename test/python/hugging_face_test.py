"""Compares imported configurations with the same models in torch, on the same weights.

The models are implemented here with the tensor names of transformers. Weft imports the weights from
before and after torch's step; Weft's own step must give the same difference.
"""

import json
import os
import subprocess
import tempfile

from beside_torch import WEFT, check, distance, load, save, step
import torch
from torch.nn import functional as F

WORDS, FEATURES, HEADS, LAYERS, LENGTH = 13, 16, 4, 2, 8

GPT2 = {"model_type": "gpt2", "n_embd": FEATURES, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LENGTH,
        "vocab_size": WORDS, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
LLAMA = {"model_type": "llama", "hidden_size": FEATURES, "intermediate_size": 24, "num_hidden_layers": LAYERS,
         "num_attention_heads": HEADS, "num_key_value_heads": 2, "vocab_size": WORDS, "rms_norm_eps": 1e-5,
         "max_position_embeddings": LENGTH}
CONFIGURATIONS = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": {**LLAMA, "model_type": "mistral", "sliding_window": None},
    "qwen2": {**LLAMA, "model_type": "qwen2", "tie_word_embeddings": False},
}


def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    hidden = torch.ones(q.shape[-2], q.shape[-2]).triu(1).bool()
    return (scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v).transpose(1, 2).flatten(2)


def heads(x, count):
    return x.unflatten(2, (count, -1)).transpose(1, 2)


def gpt2(weights, tokens):
    def norm(x, name):
        return F.layer_norm(x, (FEATURES,), weights[name + ".weight"], weights[name + ".bias"])

    def linear(x, name):  # its weights are [inputs, outputs]
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    x = weights["transformer.wte.weight"][tokens] + weights["transformer.wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        own = f"transformer.h.{layer}."
        q, k, v = (heads(one, HEADS) for one in linear(norm(x, own + "ln_1"), own + "attn.c_attn").split(FEATURES, 2))
        x = x + linear(attend(q, k, v), own + "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, own + "ln_2"), own + "mlp.c_fc"), approximate="tanh"), own + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ weights["transformer.wte.weight"].t()


def gpt2_weights():
    shapes = {"transformer.wte.weight": (WORDS, FEATURES), "transformer.wpe.weight": (LENGTH, FEATURES)}
    for layer in range(LAYERS):
        for name, shape in {"ln_1": (FEATURES,), "ln_2": (FEATURES,), "attn.c_attn": (FEATURES, 3 * FEATURES),
                            "attn.c_proj": (FEATURES, FEATURES), "mlp.c_fc": (FEATURES, 4 * FEATURES),
                            "mlp.c_proj": (4 * FEATURES, FEATURES)}.items():
            shapes[f"transformer.h.{layer}.{name}.weight"] = shape
            shapes[f"transformer.h.{layer}.{name}.bias"] = shape[-1:]
    for name in ("weight", "bias"):
        shapes[f"transformer.ln_f.{name}"] = (FEATURES,)
    return shapes


def rotated(x):
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)


def llama(weights, tokens):
    def norm(x, name):
        return weights[name + ".weight"] * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

    def linear(x, name):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(LAYERS):
        own = f"model.layers.{layer}."
        n = norm(x, own + "input_layernorm")
        q = rotated(heads(linear(n, own + "self_attn.q_proj"), HEADS))
        k = rotated(heads(linear(n, own + "self_attn.k_proj"), 2)).repeat_interleave(2, 1)
        v = heads(linear(n, own + "self_attn.v_proj"), 2).repeat_interleave(2, 1)
        x = x + linear(attend(q, k, v), own + "self_attn.o_proj")
        n = norm(x, own + "post_attention_layernorm")
        x = x + linear(F.silu(linear(n, own + "mlp.gate_proj")) * linear(n, own + "mlp.up_proj"), own + "mlp.down_proj")
    return linear(norm(x, "model.norm"), "lm_head")


def llama_weights(biases):
    shapes = {"model.embed_tokens.weight": (WORDS, FEATURES), "model.norm.weight": (FEATURES,),
              "lm_head.weight": (WORDS, FEATURES)}
    for layer in range(LAYERS):
        own = f"model.layers.{layer}."
        for name, outputs, inputs in (("q_proj", FEATURES, FEATURES), ("k_proj", 8, FEATURES), ("v_proj", 8, FEATURES),
                                      ("o_proj", FEATURES, FEATURES)):
            shapes[f"{own}self_attn.{name}.weight"] = (outputs, inputs)
            if biases and name != "o_proj":
                shapes[f"{own}self_attn.{name}.bias"] = (outputs,)
        for name, shape in (("gate_proj", (24, FEATURES)), ("up_proj", (24, FEATURES)), ("down_proj", (FEATURES, 24))):
            shapes[f"{own}mlp.{name}.weight"] = shape
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{own}{name}.weight"] = (FEATURES,)
    return shapes


def imported(folder, name, weights):
    save(os.path.join(folder, "weights.safetensors"), weights)
    ran = subprocess.run([WEFT, "import", "config.json", "--name", name, "-o", f"{name}.weft",
                          "--weights", "weights.safetensors"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return load(os.path.join(folder, f"{name}.safetensors"))


def compare(name, configuration, folder):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(configuration, file)
    torch.manual_seed(3)
    shapes = gpt2_weights() if name == "gpt2" else llama_weights(biases=name == "qwen2")
    weights = {one: (0.3 * torch.randn(shape)).requires_grad_() for one, shape in shapes.items()}
    tokens, targets = torch.randint(0, WORDS, (3, LENGTH)), torch.randint(0, WORDS, (3, LENGTH))
    scores = (gpt2 if name == "gpt2" else llama)(weights, tokens)
    expected = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
    expected.backward()
    behind = imported(folder, name, {one: weight - weight.grad for one, weight in weights.items()})
    before = imported(folder, name, weights)
    loss, after = step(folder, name, {"tokens": tokens, "targets": targets}, ", b = 3")
    farthest = max(distance(before[one] - after[one], before[one] - behind[one]) for one in before)
    check(name, loss, expected.item(), farthest, sum(weight.numel() for weight in before.values()))


def main():
    for name, configuration in CONFIGURATIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            compare(name, configuration, folder)


if __name__ == "__main__":
    main()
