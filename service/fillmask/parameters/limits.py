"""Limits of a request, which depend on the model and on who asks."""

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Maximum sizes of a request."""

    model_config = ConfigDict(frozen=True)

    max_tokens: int = Field(
        description="Maximum number of tokens of one text, including special tokens."
    )
    max_texts: int = Field(description="Maximum number of texts of one request.")
    max_masks: int = Field(description="Maximum number of masks in all texts of one request.")
    max_top_k: int = Field(description="Maximum number of fills per mask.")
    max_passes: int = Field(
        description="Maximum number of passes for one request. Plain fills do not count."
    )
    max_body_bytes: int = Field(description="Maximum number of bytes of a request body.")
