"""Limits of a request, which depend on the model and on who asks."""

from pydantic import BaseModel, ConfigDict, Field

# limit of the command and of Python, because a text with this many passes takes about 200 MB of
# memory while it waits
MAX_LOCAL_PASSES = 2**16


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
    # end of the message about a larger top_k, if a setting and not the vocabulary is the limit
    top_k_cure: str = Field(default="", exclude=True)


def told_passes(limit: int) -> str:
    """Return the maximum number of passes for messages, with its setting if it has one."""
    return str(limit) if limit == MAX_LOCAL_PASSES else f"{limit} (FILLMASK_MAX_PASSES)"
