#!/usr/bin/env bash
# Renders the dossiers of recorded campaigns again, after the pages changed: sample_runs/render.sh labelled all-tiers
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd "${BIN:-../.venv/bin}" && pwd)

for name in "$@"; do
  (
    cd "$name"
    "$bin/reporter" html runs/ --campaign campaign.toml -o dossier.html
    "$bin/reporter" pdf runs/ --campaign campaign.toml -o dossier.pdf
    pdftoppm -r 110 -f 1 -l 1 -png -singlefile dossier.pdf decision-page
  )
done
