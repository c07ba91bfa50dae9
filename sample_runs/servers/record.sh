#!/usr/bin/env bash
# Records the sample "engines" and renders its dossier; builds the servers' environments first where they are not there.
#
# For a machine on which nothing else runs. The protocol's commands are allowed: they start the three servers, for each
# pass anew. The test documents are not looked at: that would start the chosen server once more and take as long again.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(cd "${BIN:-../../.venv/bin}" && pwd)

PYTHON=${PYTHON:-$bin/python} ./environments.sh ../../.servers
cd ../engines
echo "== engines: $(date -u +%FT%TZ), load $(cut -d' ' -f1 /proc/loadavg)" >&2
rm -rf runs protocol.lock.json protocol.salt choice.json dossier.html dossier_files dossier.pdf decision-page.png
"$bin/collector" check protocol.toml
"$bin/collector" freeze protocol.toml
"$bin/collector" run protocol.toml --allow-commands --out runs/ || [ $? -eq 5 ]
"$bin/reporter" choose runs/ --campaign campaign.toml -o choice.json
"$bin/reporter" check runs/
BIN=$bin ../render.sh engines
echo "== done: $(date -u +%FT%TZ)" >&2
