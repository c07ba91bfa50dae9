#!/usr/bin/env bash
# Records sample campaigns, one after the other, and renders their dossiers: sample_runs/record.sh labelled all-tiers
#
# For a machine on which nothing else runs. A folder keeps its protocol.toml, campaign.toml and documents.jsonl as they
# are; everything else in it is made here. Where validation recommends nothing, the test documents are not looked at.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd "${BIN:-../.venv/bin}" && pwd)

for name in "$@"; do
  echo "== $name: $(date -u +%FT%TZ), load $(cut -d' ' -f1 /proc/loadavg)" >&2
  (
    cd "$name"
    rm -rf runs protocol.lock.json protocol.salt choice.json dossier.html dossier_files dossier.pdf decision-page.png
    "$bin/collector" check protocol.toml
    "$bin/collector" freeze protocol.toml
    "$bin/collector" run protocol.toml --out runs/ || [ $? -eq 5 ]
    "$bin/reporter" choose runs/ --campaign campaign.toml -o choice.json
    if ! grep -q '"chosen": null' choice.json; then
      "$bin/collector" confirm protocol.toml --choice choice.json --out runs/ || [ $? -eq 5 ]
    fi
    "$bin/reporter" check runs/
  )
  BIN=$bin ./render.sh "$name"
done
echo "== done: $(date -u +%FT%TZ)" >&2
