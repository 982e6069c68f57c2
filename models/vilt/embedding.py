"""A deterministic visual embedding for ViLT that can be traced and exported.

The stock `ViltEmbeddings.visual_embed` (transformers 4.57, `modeling_vilt.py`) draws patches with `multinomial` and
loops over pictures. With `max_image_length=-1`, the default of every released checkpoint, the drawing keeps all valid
patches and only permutes them, and attention does not depend on their order. So keeping every patch in place, with
the padding masked, gives the same logits.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import ViltForQuestionAnswering


def interpolation_weights(source: int, target: int, valid: Tensor) -> Tensor:
    """Linear interpolation (align_corners=True) of `source` positions onto the first `valid` of `target` places.

    `valid`: B lengths, one a picture. Returns B x target x source; rows past the valid length hold what their place
    would extrapolate to, clamped to the last position: those patches are padding, and masked. The weight of position p
    at the real-valued place s is the hat function max(0, 1 - |s - p|).
    """
    place = torch.arange(target, device=valid.device, dtype=torch.float32)
    step = (source - 1) / torch.clamp(valid.to(torch.float32) - 1, min=1.0)
    at = torch.clamp(place[None, :] * step[:, None], max=float(source - 1))
    position = torch.arange(source, device=valid.device, dtype=torch.float32)
    return torch.relu(1.0 - torch.abs(at[:, :, None] - position))


def patch_features(self, pixel_values: Tensor) -> Tensor:
    """The patch projection as one matrix product, B x rows x columns x hidden, for B x 3 x H x W.

    The stock convolution has its stride equal to its kernel, so no pixel is read twice: cutting the picture into
    patches and multiplying is the same sum. As a matrix product it is quantised with the others (a tenth of the time
    of an 8-bit ViLT-B/32 was this convolution).
    """
    weight = self.patch_embeddings.projection.weight  # hidden x 3 x patch x patch
    patch = self.config.patch_size
    batch, channels = pixel_values.shape[:2]
    rows, columns = pixel_values.shape[2] // patch, pixel_values.shape[3] // patch
    cut = pixel_values.reshape(batch, channels, rows, patch, columns, patch).permute(0, 2, 4, 1, 3, 5)
    # `reshape`, since the exporter folds no `flatten` of a weight into a constant, and only constants are quantised.
    matrix = weight.reshape(weight.shape[0], -1).t()
    return torch.matmul(cut.flatten(3), matrix) + self.patch_embeddings.projection.bias


def visual_embed(
    self,
    pixel_values: Tensor,
    pixel_mask: Tensor,
    max_image_length: int = -1,  # noqa: ARG001 - the stock signature
) -> tuple[Tensor, Tensor, None]:
    """Replaces `ViltEmbeddings.visual_embed`: patches with their positions, and the mask of valid ones.

    pixel_values: B x 3 x H x W, H and W multiples of the patch size; pixel_mask: B x H x W, 1 where there is picture,
    a rectangle from the upper left corner. Returns embeddings B x (1 + patches) x hidden (the class token first) and
    their mask B x (1 + patches). `max_image_length` is accepted for the stock signature and has to be -1.
    """
    patch = self.config.patch_size
    patches = patch_features(self, pixel_values)
    _, rows, columns, channels = patches.shape
    # Nearest-neighbour interpolation of the mask to the patch grid reads each patch's upper left pixel.
    mask = pixel_mask[:, ::patch, ::patch]
    side = self.config.image_size // patch
    positions = self.position_embeddings[0, 1:, :].reshape(side, side * channels)
    down = interpolation_weights(side, rows, mask[:, :, 0].sum(dim=1)).to(positions.dtype)
    across = interpolation_weights(side, columns, mask[:, 0, :].sum(dim=1)).to(positions.dtype)
    # Bilinear interpolation is separable: first down the rows, then across the columns.
    grid = torch.matmul(down, positions).reshape(-1, rows, side, channels)
    grid = torch.matmul(across[:, None], grid)
    tokens = (patches + grid).flatten(1, 2)
    cls = (self.cls_token + self.position_embeddings[:, :1, :]).expand(tokens.shape[0], -1, -1)
    tokens = self.dropout(torch.cat([cls, tokens], dim=1))
    flat = mask.flatten(1)
    return tokens, torch.cat([torch.ones_like(flat[:, :1]), flat], dim=1), None


def make_deterministic(model: ViltForQuestionAnswering) -> ViltForQuestionAnswering:
    """Give one model instance the deterministic embedding; returns the same instance.

    Raises ValueError for a model that samples patches (`max_image_length` other than -1): its logits are random.
    """
    if model.config.max_image_length != -1:
        raise ValueError(f"max_image_length is {model.config.max_image_length}; only -1 (all patches) is deterministic")
    embeddings = model.vilt.embeddings
    embeddings.visual_embed = types.MethodType(visual_embed, embeddings)
    return model


@contextmanager
def deterministic(model: ViltForQuestionAnswering) -> Iterator[ViltForQuestionAnswering]:
    """The deterministic embedding for the length of a `with` block, the stock one after it."""
    make_deterministic(model)
    try:
        yield model
    finally:
        del model.vilt.embeddings.visual_embed  # the instance attribute; the class's own method shows again
