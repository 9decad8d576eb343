"""Names under which clients reach the models: the names of the bundles and the aliases."""

from collections.abc import Mapping

from fillmask.errors import SettingsError, quote
from fillmask.models.served_model import ServedModel

_RESERVED = {"stats"}  # of Triton's path /v2/models/stats


def with_aliases(
    served_name: str, by_name: Mapping[str, ServedModel], default: ServedModel
) -> dict[str, ServedModel]:
    """Return the models by name, followed by the models by alias.

    Args:
        served_name: the setting, a comma-separated list of ALIAS or ALIAS=MODEL. An alias without a
            model is an alias of the default model.
        by_name: all models by the names of their bundles.
        default: the default model.

    Raises:
        SettingsError: a model of the list does not exist, two models have the same name, or an
            alias is a part of a path.
    """
    served = dict(by_name)
    for entry in filter(None, map(str.strip, served_name.split(","))):
        alias, _, name = entry.partition("=")
        if alias in _RESERVED:
            raise SettingsError(
                f"served_name has the alias {quote(alias)}, which is a part of a path of the Open "
                "Inference Protocol; use another alias."
            )
        model = by_name.get(name) if name else default
        if model is None:
            raise SettingsError(
                f"The model of {quote(alias)} in served_name must be one of "
                f"{', '.join(map(quote, by_name))} (got {quote(name)})."
            )
        # An alias may repeat the name of its own model, because the name of a KServe
        # InferenceService may be the name of the bundle.
        other = served.setdefault(alias, model)
        if other is not model:
            raise SettingsError(
                f"served_name has the alias {quote(alias)} of the model {quote(model.name)}, but "
                f"{quote(alias)} is a name of the model {quote(other.name)}; use another alias."
            )
    return served
