"""The measuring wing: runs a frozen protocol on one machine and appends JSON-lines records."""


def __getattr__(name: str) -> str:
    # Looked up only when asked for: importlib.metadata takes longer to import than click.
    if name != "__version__":
        raise AttributeError(f"module 'collector' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gpu-dossier")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0+unknown"
