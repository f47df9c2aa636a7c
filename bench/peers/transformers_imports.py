#!/usr/bin/env python3
"""Compares imported models with transformers: the same weights and words must give the same loss and step.

  bench/peers/transformers_imports.py build/release/weft

For each kind of configuration that `weft import` reads, transformers makes a small model with random weights and
runs one step of gradient descent on random words. Weft imports the configuration and weights and runs the same step.
Losses and all parameters after the step are compared. Exits with 1 if any differ by more than rounding.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import load_file

RATE = 0.5
BATCH, WORDS, VOCABULARY = 2, 6, 20
CLASSES = 10

SMALL = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=WORDS, initializer_range=0.2)
LLAMA = dict(SMALL, num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=10000.0)
DEEPSEEK = dict(LLAMA, num_key_value_heads=4, moe_intermediate_size=8, n_routed_experts=4, n_shared_experts=1,
                num_experts_per_tok=2, kv_lora_rank=8, q_lora_rank=None, qk_nope_head_dim=4, qk_rope_head_dim=4,
                v_head_dim=4, first_k_dense_replace=1)

# name: (configuration, model, kind of its inputs)
CASES = {
    "gpt2": ("GPT2Config", dict(n_embd=16, n_layer=2, n_head=2, n_positions=WORDS, vocab_size=VOCABULARY,
                                attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, initializer_range=0.2),
             "GPT2LMHeadModel", "words"),
    "llama": ("LlamaConfig", LLAMA, "LlamaForCausalLM", "words"),
    "llama tied": ("LlamaConfig", dict(LLAMA, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
                   "LlamaForCausalLM", "words"),
    "mistral": ("MistralConfig", dict(LLAMA, sliding_window=3), "MistralForCausalLM", "words"),
    "qwen2": ("Qwen2Config", LLAMA, "Qwen2ForCausalLM", "words"),
    "mixtral": ("MixtralConfig", dict(LLAMA, num_local_experts=4, num_experts_per_tok=4), "MixtralForCausalLM",
                "words"),
    "deepseek_v2": ("DeepseekV2Config", dict(DEEPSEEK, topk_method="greedy", n_group=1, topk_group=1,
                                             num_experts_per_tok=4, routed_scaling_factor=1.0),
                    "DeepseekV2ForCausalLM", "words"),
    "deepseek_v3": ("DeepseekV3Config", dict(DEEPSEEK, n_group=1, topk_group=1, num_experts_per_tok=4,
                                             q_lora_rank=8), "DeepseekV3ForCausalLM", "words"),
    "bert": ("BertConfig", dict(SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
             "BertForMaskedLM", "masked"),
    "t5": ("T5Config", dict(vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4,
                            dropout_rate=0.0, initializer_factor=1.0), "T5ForConditionalGeneration", "pairs"),
    "vit": ("ViTConfig", dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                              image_size=8, patch_size=4, num_labels=CLASSES, hidden_dropout_prob=0.0,
                              attention_probs_dropout_prob=0.0), "ViTForImageClassification", "images"),
}


def draw(kind, random):
    """Weft's inputs, by name."""
    words = lambda: random.integers(0, VOCABULARY, (BATCH, WORDS)).astype("int32")
    if kind == "images":
        return dict(image=random.standard_normal((BATCH, 3, 8, 8)).astype("float32"),
                    label=random.integers(0, CLASSES, BATCH).astype("int32"))
    fed = dict(tokens=words(), targets=words())
    if kind == "masked":
        fed.update(segments=random.integers(0, 2, (BATCH, WORDS)).astype("int32"),
                   mask=numpy.ones((BATCH, WORDS), "int32"))
    if kind == "pairs":
        fed["source"] = words()
    return fed


def loss_of(model, kind, fed):
    given = {name: torch.from_numpy(array).long() if array.dtype == "int32" else torch.from_numpy(array)
             for name, array in fed.items()}
    if kind == "images":
        logits, wanted = model(pixel_values=given["image"]).logits, given["label"]
    elif kind == "masked":
        logits = model(input_ids=given["tokens"], token_type_ids=given["segments"],
                       attention_mask=given["mask"]).logits
        wanted = given["targets"]
    elif kind == "pairs":
        logits = model(input_ids=given["source"], decoder_input_ids=given["tokens"]).logits
        wanted = given["targets"]
    else:
        logits, wanted = model(input_ids=given["tokens"]).logits, given["targets"]
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))


def save(model, folder, name):
    """Saved as by transformers, with the tensor names of checkpoints."""
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved, safe_serialization=True)
        os.rename(os.path.join(saved, "model.safetensors"), os.path.join(folder, name))


def run(weft, *arguments):
    done = subprocess.run([weft, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(told[0] if done.stderr else told[-1])
    return done.stdout


def compare(weft, name, folder):
    config_class, fields, model_class, kind = CASES[name]
    if not hasattr(transformers, model_class):
        return f"not in transformers {transformers.__version__}", None
    torch.manual_seed(7)
    random = numpy.random.default_rng(7)
    config = getattr(transformers, config_class)(**fields)
    config._attn_implementation = "eager"
    model = getattr(transformers, model_class)(config).float()
    model.train()
    with torch.no_grad():  # biases and gains begin as constants, which would hide a mistake
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    config.architectures = [model_class]
    config.save_pretrained(folder)
    save(model, folder, "before.safetensors")
    fed = draw(kind, random)
    numpy.savez(os.path.join(folder, "data.npz"), **fed)

    loss = loss_of(model, kind, fed)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(RATE * parameter.grad)
    save(model, folder, "after.safetensors")

    path = lambda file: os.path.join(folder, file)
    run(weft, "import", path("config.json"), "--name", "mine", "-o", path("before.weft"), "--weights",
        path("before.safetensors"))
    os.rename(path("before.safetensors"), path("start.safetensors"))
    run(weft, "import", path("config.json"), "--name", "mine", "-o", path("after.weft"), "--weights",
        path("after.safetensors"))
    sizes = f"b = {BATCH}" + ("" if kind == "images" else f", s = {WORDS}") + (f", r = {WORDS}" if kind == "pairs" else "")
    if "moe" in json.dumps(fields) or "experts" in json.dumps(fields):
        sizes += f", slots = {WORDS}"  # room for every word with every expert: nothing is dropped
    script = (f"LOAD mine FROM '{path('start.safetensors')}'; "
              f"TRAIN mine FROM '{path('data.npz')}' STEPS 1 WITH ({sizes}, optimizer = sgd, learning_rate = {RATE}, "
              f"threads = 1); SAVE mine TO '{path('ours.safetensors')}'")
    answer = run(weft, "-i", path("before.weft"), "--format", "json", "-c", script)
    ours = next(json.loads(line)["first_loss"] for line in answer.splitlines() if '"first_loss"' in line)

    theirs, mine = load_file(path("after.safetensors")), load_file(path("ours.safetensors"))
    apart, worst = 0.0, ""
    for tensor, value in theirs.items():
        if tensor not in mine:
            return f"{tensor} is missing", None
        difference = (mine[tensor].float().reshape(-1) - value.float().reshape(-1)).abs().max().item()
        scale = value.abs().max().item() + 1e-9
        if difference / scale > apart:
            apart, worst = difference / scale, tensor
    return None, (loss.item(), ours, apart, worst, sum(p.numel() for p in model.parameters()))


def main():
    weft = sys.argv[1] if len(sys.argv) > 1 else "build/release/weft"
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"{'model':<12}  {'parameters':>10}  {'their loss':>10}  {'our loss':>10}  {'apart':>8}  after a step")
    failed = False
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                problem, found = compare(weft, name, folder)
            except Exception as error:  # one that fails leaves the others to be compared
                problem, found = f"{type(error).__name__}: {error}", None
        if found is None:
            print(f"{name:<12}  {problem}")
            failed |= not problem.startswith("not in transformers")
            continue
        theirs, ours, apart, worst, parameters = found
        good = abs(theirs - ours) < 1e-4 * max(1, abs(theirs)) and apart < 1e-3
        failed |= not good
        print(f"{name:<12}  {parameters:>10}  {theirs:>10.6f}  {ours:>10.6f}  {abs(theirs - ours):>8.1e}  "
              f"{apart:.1e} at {worst}{'' if good else '   <-- differs'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
