"""Attention with masks that are given as objects."""

from .splash_attention_kernel import (
    BlockSizes as BlockSizes,
    QKVLayout as QKVLayout,
    SegmentIds as SegmentIds,
    make_splash_mha as make_splash_mha,
    make_splash_mha_single_device as make_splash_mha_single_device,
    make_splash_mqa as make_splash_mqa,
    make_splash_mqa_single_device as make_splash_mqa_single_device,
)
from .splash_attention_mask import (
    CausalMask as CausalMask,
    FullMask as FullMask,
    LocalMask as LocalMask,
    Mask as Mask,
    MultiHeadMask as MultiHeadMask,
    NumpyMask as NumpyMask,
    make_causal_mask as make_causal_mask,
    make_local_attention_mask as make_local_attention_mask,
    make_random_mask as make_random_mask,
)
