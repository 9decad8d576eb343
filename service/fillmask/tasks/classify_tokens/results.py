"""Tokens and entities with their labels."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from fillmask.tasks.result import ErrorResponse, Result, fields_of
from fillmask.tasks.score.parameters import Part


@dataclass(frozen=True, slots=True)
class Entity(Result):
    """A token with its label, or neighbouring tokens with the same label."""

    entity_group: Annotated[
        str | None,
        Field(description="Label without B- and I-. Only with an aggregation of tokens."),
    ]
    entity: Annotated[
        str | None, Field(description="Label of the token. Only with aggregation_strategy none.")
    ]
    score: Annotated[
        float, Field(description="Probability of the label, of several tokens or words the mean.")
    ]
    index: Annotated[
        int | None,
        Field(
            description="Index of the token in the text, special tokens included. Only with "
            "aggregation_strategy none."
        ),
    ]
    word: Annotated[str, Field(description="The tokens as text, as the tokenizer joins them.")]
    start: Annotated[
        int,
        Field(description="Index of the first character in the text, or in its part of a pair."),
    ]
    end: Annotated[int, Field(description="Index after the last character.")]
    part: Annotated[
        Part | None,
        Field(description="Part of the pair that contains the tokens. Only pairs have this field."),
    ] = None

    @property
    def label(self) -> str:
        """The label, of an entity without B- and I-."""
        return self.entity_group or self.entity or ""


_ENTITIES = TypeAdapter(list[Entity]).serializer


def entities_to_json(entities: list[Entity]) -> list[bytes]:
    return [_ENTITIES.to_json(entities, exclude_none=True)]


@fields_of(Entity)
class EntityBody(BaseModel):
    """A token with its label, or neighbouring tokens with the same label."""


class ClassifyTokensResponse(RootModel[list[EntityBody] | list[list[EntityBody] | ErrorResponse]]):
    """The entities of one text in their order, or a list with the entities of each text."""
