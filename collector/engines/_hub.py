"""Ask once whether the Hub answers before a model is looked up there: the library would try six times for each file."""

from __future__ import annotations

from collector.contract.errors import DossierError

from ._artefact import Artefact, local_folder

TIMEOUT_S = 5.0


def at_hand(artefact: Artefact) -> Artefact:
    """Return the artefact; where the Hub cannot be reached, as one that is read from the Hub's cache alone.

    A folder is never asked about. Raises DossierError, with the ways out, where the Hub does not answer and the cache
    does not hold the model.
    """
    from huggingface_hub import constants

    if artefact.folder is not None or constants.is_offline_mode() or (fault := _unreached(artefact)) is None:
        return artefact
    if local_folder(artefact) is not None:
        return artefact._replace(is_cached=True)
    at = f" --revision {artefact.revision}" if artefact.revision else ""
    raise DossierError(
        f"{artefact.source} is no folder and not in the Hub's cache, "
        f"and {constants.ENDPOINT} cannot be reached: {fault}",
        next_step="name the model's folder under [model] id (its tokenizer's files are enough where servers alone load "
        f"the model); or download it where there is a network, with `hf download {artefact.source}{at}`, and copy the "
        "folder; "
        "--no-tokens checks everything else",
    )


def _unreached(artefact: Artefact) -> str | None:
    """Return why one short request to the Hub failed, null where anything answered."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(f"{constants.ENDPOINT}/{artefact.source}", timeout=TIMEOUT_S)
    # The library changed its HTTP client before: whatever the client raises, nothing was reached.
    except Exception as error:
        return str(error) or type(error).__name__
    return None
