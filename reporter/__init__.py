"""The explaining wing: aggregates records and renders the selection dossier. Never imports torch."""
