"""Pretrained networks that turn pictures and texts into vectors."""

from unshuffle.encoders._encoder import Encoder, has_content, is_encoder, load_encoder

__all__ = ["Encoder", "has_content", "is_encoder", "load_encoder"]
