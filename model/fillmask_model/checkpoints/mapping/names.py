"""Names of tensors that several families share."""

from __future__ import annotations

LLAMA_LINEARS = {
    "layers.{}.self_attn.q_proj": "blocks.{}.query",
    "layers.{}.self_attn.k_proj": "blocks.{}.key",
    "layers.{}.self_attn.v_proj": "blocks.{}.value",
    "layers.{}.self_attn.o_proj": "blocks.{}.output",
    "layers.{}.mlp.gate_proj": "blocks.{}.ffn_in",
    "layers.{}.mlp.up_proj": "blocks.{}.ffn_gate",
    "layers.{}.mlp.down_proj": "blocks.{}.ffn_out",
}
LLAMA_BLOCKS = {
    **LLAMA_LINEARS,
    "embed_tokens": "embeddings.word",
    "layers.{}.input_layernorm": "blocks.{}.attention_norm",
    "layers.{}.post_attention_layernorm": "blocks.{}.ffn_norm",
    "norm": "final_norm",
}
