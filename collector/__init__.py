"""The measuring wing: runs a frozen protocol on one machine and appends JSON-lines records."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gpu-dossier")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"
