"""The request body of /fill-mask."""

from typing import Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from service.api.bodies.hugging_face import HuggingFaceRequest
from service.api.bodies.json_schema import Components
from service.api.bodies.request_body import (
    check_choice,
    check_whole_number,
    validation_context,
)
from service.api.bodies.values import NOT_BLANK, client_error, describe
from service.errors import quote
from service.tasks.options import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    MAX_WORD_TOKENS,
    FillOptions,
    Granularity,
    OnLongText,
    Order,
    Strategy,
)
from service.tasks.targets.targets import MAX_TARGETS
from service.tokenization.encoded_text import InputText

_CHOICES: dict[str, tuple[str, ...]] = {
    "granularity": get_args(Granularity),
    "strategy": get_args(Strategy),
    "order": get_args(Order),
    "on_long_text": get_args(OnLongText),
}


class FillMaskParameters(BaseModel):
    """Parameters of a fill request. A null has the same meaning as a missing field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_k: int | None = Field(
        default=None,
        ge=1,
        description=f"Maximum number of fills per mask. The default is {DEFAULT_TOP_K}. With "
        "`targets`, the default is the number of targets.",
    )
    targets: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TARGETS,
        description="Words or phrases to rank in place of each mask, without duplicates. A target "
        "of several tokens has one score for the whole word or phrase.",
    )

    granularity: Granularity | None = Field(
        default=None,
        description="With token (the default), a fill is a single token. With word, a fill is a "
        "word of one or more tokens.",
    )
    max_word_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_WORD_TOKENS,
        description=f"Maximum number of tokens per word. The default is {DEFAULT_WORD_TOKENS}.",
    )
    strategy: Strategy | None = Field(
        default=None,
        description="With independent (the default), the model fills each mask on its own. With "
        "joint, the model fills all masks of a text together.",
    )
    order: Order | None = Field(
        default=None,
        description="Order in which the strategy joint fills the masks. With confidence (the "
        "default), the mask with the most probable token comes first. With left_to_right, the "
        "leftmost mask comes first.",
    )

    on_long_text: OnLongText | None = Field(
        default=None,
        description="With error (the default), the service rejects a text that is longer than the "
        "model's input. With window, the model reads as much text around the masks as fits into "
        "its input. Each fill of a long text contains the start and end of its window.",
    )

    @field_validator("granularity", "strategy", "order", "on_long_text", mode="before")
    @classmethod
    def _check_choice(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _CHOICES[info.field_name or ""], info)

    @field_validator("max_word_tokens", mode="before")
    @classmethod
    def _check_max_word_tokens(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info, MAX_WORD_TOKENS)

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info, validation_context(info).limits.max_top_k)

    @field_validator("targets", mode="before")
    @classmethod
    def _check_targets(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        context = validation_context(info)
        name = context.targets or f"{context.parameters}.targets"
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_TARGETS:
            got = f"a list of {len(value)}" if isinstance(value, list) else describe(value)
            raise client_error(f"{name} must be a list of 1 to {MAX_TARGETS} texts (got {got}).")
        seen = set()
        for index, target in enumerate(value):
            if not isinstance(target, str) or not target.strip():
                raise client_error(
                    f"{name}[{index}] must be a non-blank text (got {describe(target)})."
                )
            if target in seen:
                raise client_error(f"The target {quote(target)} is a duplicate; list it once.")
            seen.add(target)
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        chosen = [
            name
            for name, given in (
                ("targets", self.targets is not None),
                ('granularity "word"', self.granularity == "word"),
                ('strategy "joint"', self.strategy == "joint"),
            )
            if given
        ]
        if len(chosen) > 1:
            raise client_error(f"{chosen[0]} and {chosen[1]} exclude each other; choose one.")
        return self

    @property
    def options(self) -> FillOptions:
        """The parameters as options of the fill-mask task."""
        given = {name: value for name, value in dict(self).items() if value is not None}
        if self.targets is not None:
            given["targets"] = tuple(self.targets)
        return FillOptions(**given)


_DEFAULTS = FillOptions()
_EXAMPLES: list[JsonValue] = [
    {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 5}},
    {"inputs": "She drank a cup of [MASK].", "parameters": {"targets": ["tea", "water"]}},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at the [MASK]."}},
]


class FillMaskRequest(HuggingFaceRequest):
    """A request to fill the masks of one or more texts."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})
    parameters_model = FillMaskParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts with at least one mask, or a list of these."
    )
    parameters: FillMaskParameters | list[FillMaskParameters] | None = None

    @property
    def options(self) -> FillOptions | list[FillOptions]:
        """Options for all texts, or a list with the options of each text."""
        if isinstance(self.parameters, list):
            return [parameters.options for parameters in self.parameters]
        return self.parameters.options if self.parameters else _DEFAULTS

    @classmethod
    def components(cls, max_texts: int, max_top_k: int = 1) -> Components:
        """Return the JSON schemas of the request and its parts, with this server's limits."""
        components = super().components(max_texts)
        parameters = components[FillMaskParameters.__name__]["properties"]
        parameters["top_k"]["anyOf"][0]["maximum"] = max_top_k
        targets = parameters["targets"]["anyOf"][0]
        targets |= {"items": {"type": "string", "pattern": NOT_BLANK}, "uniqueItems": True}
        return components
