#!/usr/bin/env bash
# Make the environments of the peer tools, one each: bash tests/benchmarks/peers/environments.sh FOLDER [TOOL ...]
#
# Tools: llmeter guidellm aiperf inference-perf vllm. Every package is pinned in TOOL/requirements.txt, as resolved for
# Linux x86-64; nothing is resolved again (--no-deps), which takes some of these tools minutes. One that stands is left.
# PYTHON: a Python 3.11 for all but inference-perf; PYTHON312: a Python 3.12 for that one, skipped without it.
set -euo pipefail
recipes=$(cd "$(dirname "$0")" && pwd)
folder=${1:?"usage: environments.sh FOLDER [TOOL ...]"}
shift
[ $# -gt 0 ] || set -- llmeter guidellm aiperf inference-perf vllm
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
unset PIP_CONSTRAINT

for tool in "$@"; do
  target=$folder/$tool
  python=${PYTHON:-python3.11}
  [ "$tool" != inference-perf ] || python=${PYTHON312:-python3.12}
  if [ -e "$target/.installed" ]; then
    echo "$tool: stands in $target"
    continue
  fi
  if ! "$python" --version >/dev/null 2>&1; then
    echo "$tool: skipped, $python does not run; set PYTHON or PYTHON312" >&2
    continue
  fi
  rm -rf "$target"
  "$python" -m venv "$target"
  # torch comes first and by itself: where the CPU build of this version is to be had, CUDA's libraries stay out.
  case $tool in guidellm | vllm) "$target/bin/python" -m pip install --quiet torch==2.13.0 ;; esac
  "$target/bin/python" -m pip install --quiet --no-deps -r "$recipes/$tool/requirements.txt"
  [ "$tool" != vllm ] || "$recipes/../../../sample_runs/servers/finish_vllm.sh" "$target"
  touch "$target/.installed"
  echo "$tool: $("$target/bin/python" --version), $(du -sm "$target" | cut -f1) MB"
done
