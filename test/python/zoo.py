"""Small models of transformers, torchvision and timm with random weights, by name.

Each is a function that returns a module and its example inputs, a dict. A library that is not installed, or
that lacks the model, raises ImportError or AttributeError.
"""

import torch

WORDS, LENGTH = 96, 12
SMALL = {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 40, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}
GROUPED = {"num_key_value_heads": 2}
LATENT = {"kv_lora_rank": 8, "q_lora_rank": 12, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
          "num_key_value_heads": 4, "head_dim": 4, "moe_intermediate_size": 16, "n_routed_experts": 4,
          "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1}
CODED = {"vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0,
         "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


def tokens(length=LENGTH):
    return torch.randint(3, WORDS - 1, (2, length))


def decoder(kind, **given):
    def build():
        import transformers

        configuration = transformers.AutoConfig.for_model(kind, **{**SMALL, **given})
        return transformers.AutoModelForCausalLM.from_config(configuration), {"input_ids": tokens()}

    return build


def encoder(kind, **given):
    def build():
        import transformers

        configuration = transformers.AutoConfig.for_model(kind, **{**SMALL, **given})
        return transformers.AutoModelForMaskedLM.from_config(configuration), {"input_ids": tokens()}

    return build


def t5():
    import transformers

    configuration = transformers.T5Config(vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2,
                                          num_decoder_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0)
    return (transformers.T5ForConditionalGeneration(configuration),
            {"input_ids": tokens(), "decoder_input_ids": tokens(7)})


def bart():
    import transformers

    return (transformers.BartForConditionalGeneration(transformers.BartConfig(**CODED, max_position_embeddings=40)),
            {"input_ids": tokens(), "decoder_input_ids": tokens(7)})


def whisper():
    import transformers

    configuration = transformers.WhisperConfig(**CODED, num_mel_bins=8, max_source_positions=20,
                                               max_target_positions=16, suppress_tokens=None,
                                               begin_suppress_tokens=None)
    return (transformers.WhisperForConditionalGeneration(configuration),
            {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": tokens(7)})


def vit():
    import transformers

    configuration = transformers.ViTConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                           num_attention_heads=4, image_size=32, patch_size=8, num_labels=10)
    return transformers.ViTForImageClassification(configuration), {"pixel_values": torch.randn(2, 3, 32, 32)}


def image(library, name, size=64, **given):
    def build():
        if library == "timm":
            import timm

            model = timm.create_model(name, pretrained=False, **given)
        else:
            import torchvision

            model = getattr(torchvision.models, name)(weights=None, **given)
        return model, {"x": torch.randn(2, 3, size, size)}

    return build


MODELS = {
    "llama": decoder("llama", **GROUPED),
    "qwen2": decoder("qwen2", **GROUPED),
    "qwen3": decoder("qwen3", head_dim=8, **GROUPED),
    "gemma2": decoder("gemma2", head_dim=8, sliding_window=4, query_pre_attn_scalar=8, **GROUPED),
    "gemma3": decoder("gemma3_text", head_dim=8, sliding_window=4, query_pre_attn_scalar=8, **GROUPED),
    "phi": decoder("phi", partial_rotary_factor=0.5),
    "phi3": decoder("phi3", **GROUPED),
    "mistral": decoder("mistral", sliding_window=4, **GROUPED),
    "mixtral": decoder("mixtral", num_local_experts=4, num_experts_per_tok=2, **GROUPED),
    "gpt_neox": decoder("gpt_neox", rotary_pct=0.5),
    "falcon": decoder("falcon", new_decoder_architecture=False, multi_query=True, parallel_attn=True, alibi=False),
    "falcon_grouped": decoder("falcon", new_decoder_architecture=True, num_kv_heads=2, alibi=False),
    "olmo": decoder("olmo", **GROUPED),
    "olmo2": decoder("olmo2", **GROUPED),
    "deepseek_v2": decoder("deepseek_v2", **LATENT, topk_method="greedy", n_group=1, topk_group=1,
                           routed_scaling_factor=1.0),
    "deepseek_v3": decoder("deepseek_v3", **LATENT, n_group=2, topk_group=1),
    "bert": encoder("bert"),
    "roberta": encoder("roberta", pad_token_id=1),
    "t5": t5,
    "vit": vit,
    "whisper": whisper,
    "bart": bart,
    "gpt2": decoder("gpt2", n_embd=32, n_layer=2, n_head=4, n_positions=40),
    "bloom": decoder("bloom", n_layer=2, n_head=4),
    "gpt_oss": decoder("gpt_oss", num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=4, **GROUPED),
    "modernbert": encoder("modernbert", local_attention=4, global_attn_every_n_layers=2),
    "mamba": decoder("mamba", state_size=4, expand=2, conv_kernel=4),
    "resnet18": image("torchvision", "resnet18"),
    "mobilenet_v2": image("torchvision", "mobilenet_v2"),
    "convnext_tiny": image("torchvision", "convnext_tiny"),
    "swin_t": image("torchvision", "swin_t"),
    "densenet121": image("torchvision", "densenet121"),
    "vit_tiny": image("timm", "vit_tiny_patch16_224", img_size=64),
    "mixer": image("timm", "mixer_s32_224", img_size=64),
    "efficientnet": image("timm", "efficientnet_lite0"),
}
