#!/usr/bin/env python3
# Owns the generation of tasks/definitions and tasks/workloads from the published lists in tasks/published.
# Never reads anything else: the same lists give the same bytes.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_tasks.py [--check] [--root FOLDER]   (default: the tasks folder beside scripts)"""
import csv
import json
import re
import sys
import uuid
from pathlib import Path

FAMILIES = {
    "sm_90a": ["wgmma", "tma"],
    "sm_100a": ["tcgen05_mma", "tma"],
}
SEQUENCE_LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
HEADLINE_GEMM = "gemm_n7168_k5120"
ATTENTION_LENGTH = 4096  # of the published comparison


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def constant(value, description):
    return {"type": "const", "value": value, "description": description}


def variable(description):
    return {"type": "var", "description": description}


def tensor(shape, dtype, description):
    return {"shape": shape, "dtype": dtype, "description": description}


def extras(baseline, emulator_axes, neighbours):
    return {
        "tolerance": {"rtol": 0.01, "atol": 0.01, "required_matched_ratio": 1.0},
        "targets": {arch: {"required": names, "minimum_share": 0.9} for arch, names in FAMILIES.items()},
        "baselines": {arch: baseline for arch in FAMILIES},
        "emulator_axes": emulator_axes,
        "neighbours": neighbours,
    }


def gemm_definition(name, rows):
    n, k = map(int, re.fullmatch(r"gemm_n(\d+)_k(\d+)", name).groups())
    largest = max(rows, key=lambda row: int(row["M"]))
    suites = ["suite:headline", "suite:gemm"] if name == HEADLINE_GEMM else ["suite:gemm"]
    return {
        "name": name,
        "description": f"C = A * B^T with N = {n}, K = {k}; row-major bfloat16 operands and result, float32 accumulation.",
        "op_type": "gemm",
        "tags": suites + [f"headline:{largest['workload_uuid']}"],
        "axes": {
            "M": variable("rows of A and C"),
            "N": constant(n, "rows of B, columns of C"),
            "K": constant(k, "length of the dot products"),
        },
        "inputs": {
            "A": tensor(["M", "K"], "bfloat16", "row-major"),
            "B": tensor(["N", "K"], "bfloat16", "row-major, so both operands run along K"),
        },
        "outputs": {"C": tensor(["M", "N"], "bfloat16", "row-major")},
        "reference": "native:gemm_nt",
        "ptxbench": extras("cublaslt", {"M": 128}, [{"M": 70}, {"M": 129}]),
    }


def attention_definition(name, workloads):
    causal = name.endswith("_causal")
    headline = next(w for w in workloads if w[0] == ATTENTION_LENGTH)
    mask = "key position <= query position" if causal else "no mask"
    return {
        "name": name,
        "description": f"Multi-head attention forward with log-sum-exp: P = Q K^T / sqrt(D), {mask}, O = softmax(P) V, "
                       "LSE = natural logarithm of the row sums of exp(P).",
        "op_type": "mha",
        "tags": ["suite:headline", f"headline:{headline[1]}"] + (["causal"] if causal else []),
        "axes": {
            "B": constant(4, "batch"),
            "H": constant(48, "heads, the same for Q, K and V"),
            "S": variable("sequence length of queries and keys"),
            "D": constant(128, "head dimension"),
        },
        "inputs": {
            "Q": tensor(["B", "H", "S", "D"], "bfloat16", "contiguous, head-major"),
            "K": tensor(["B", "H", "S", "D"], "bfloat16", "contiguous, head-major"),
            "V": tensor(["B", "H", "S", "D"], "bfloat16", "contiguous, head-major"),
        },
        "outputs": {
            "O": tensor(["B", "H", "S", "D"], "bfloat16", "contiguous, head-major"),
            "LSE": tensor(["B", "H", "S"], "float32", "natural logarithm, of the scaled scores"),
        },
        "reference": "native:mha_with_lse_causal" if causal else "native:mha_with_lse",
        "ptxbench": extras("cudnn_sdpa", {"S": 128}, [{"S": 192}, {"S": 256}]),
    }


def workload_row(definition, identity, axes, inputs):
    return {
        "definition": definition,
        "workload": {"uuid": identity, "axes": axes, "inputs": {name: {"type": "random"} for name in inputs}},
        "solution": None,
        "evaluation": None,
    }


def generate(published):
    """path relative to the root -> text"""
    files = {}

    def put(op_type, name, definition, rows):
        files[f"definitions/{op_type}/{name}.json"] = json.dumps(definition, indent=2) + "\n"
        files[f"workloads/{op_type}/{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)

    gemm = {}
    for row in read_rows(published / "gemm.csv"):
        gemm.setdefault(row["definition_name"], []).append(row)
    for name, rows in gemm.items():
        put("gemm", name, gemm_definition(name, rows),
            [workload_row(name, row["workload_uuid"], {"M": int(row["M"])}, "AB") for row in rows])

    known = {(row["definition_name"], int(row["seq_len"])): row["workload_uuid"]
             for row in read_rows(published / "mha_with_lse.csv")}
    for name in ("mha_with_lse_d128", "mha_with_lse_d128_causal"):
        workloads = [(s, known.get((name, s)) or str(uuid.uuid5(uuid.NAMESPACE_URL, f"ptxbench://{name}/S={s}")))
                     for s in SEQUENCE_LENGTHS]
        put("mha", name, attention_definition(name, workloads),
            [workload_row(name, identity, {"S": s}, "QKV") for s, identity in workloads])
    return files


def main(arguments):
    root = Path(__file__).resolve().parent.parent / "tasks"
    check = False
    while arguments:
        argument = arguments.pop(0)
        if argument == "--check":
            check = True
        elif argument == "--root" and arguments:
            root = Path(arguments.pop(0))
        else:
            sys.exit(__doc__)
    stale = []
    for relative, text in generate(root / "published").items():
        path = root / relative
        if check:
            if not path.is_file() or path.read_text() != text:
                stale.append(relative)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if stale:
        sys.exit("stale, run scripts/make_tasks.py: " + " ".join(stale))


if __name__ == "__main__":
    main(sys.argv[1:])
