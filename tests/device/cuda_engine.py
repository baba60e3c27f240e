#!/usr/bin/env python3
"""cuda_engine.py BINARY [CASE...]: the same jobs through `portolan train` on the CPU and on the GPU, compared.

Losses of every step must agree, and in fp32 the parameters at the end; two more runs on the GPU with --deterministic must
have the same bits and agree too. Two more kinds of cases compare bits: RESUMED, a run that ends half way and goes on from
its checkpoint with one that never stopped; CACHED, runs whose tables lie in host memory, behind caches of several sizes,
with the run whose tables lie on the device: a lost update would show. Needs a binary built with PORTOLAN_CUDA and a GPU.
CHECK="compute-sanitizer --tool memcheck --error-exitcode 9" runs the GPU's side under it, once. JOBS: cases at a time, 1
unless set.
"""
import concurrent.futures
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

TABLES = """
    - {name: a, rows: 200, dim: %(dim)s, lookups: 2}
    - {name: b, rows: 30, dim: %(dim)s, lookups: 1, zipf_exponent: 1.1}
    - {name: c, rows: 5000, dim: %(dim)s, lookups: 3}
"""
DOT = """
    - {name: bottom, type: mlp, input: dense, widths: [16, %(dim)s]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [24, 16, 1], last_activation: none}
"""
CROSS = """
    - {name: bottom, type: mlp, input: dense, widths: [16, %(dim)s]}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 3, rank: 16}
    - {name: top, type: mlp, input: cross, widths: [32, 16, 1], last_activation: none}
"""
ZOO = """
    - {name: bottom, type: mlp, input: dense, widths: [19, %(dim)s], activation: gelu, last_activation: silu}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: full, type: low_rank_cross, input: joined, layers: 1, rank: 0}
    - {name: sum, type: add, inputs: [joined, full]}
    - {name: norm, type: norm, input: sum}
    - {name: top, type: mlp, input: norm, widths: [31, 17, 1], activation: sigmoid, last_activation: none}
"""
MIXED = """
    - {name: a, rows: 100, dim: 8, lookups: 1.5}
    - {name: b, rows: 2, dim: 20, lookups: 3}
    - {name: c, rows: 3000, dim: 130, lookups: 2, zipf_exponent: 1.2}
    - {name: d, rows: 50, dim: 1, lookups: 1}
"""
HOT = """
    - {name: a, rows: 1, dim: 16, lookups: 3}
    - {name: b, rows: 2, dim: 16, lookups: 40}
    - {name: c, rows: 100000, dim: 16, lookups: 5, zipf_exponent: 1.3}
"""


def case(blocks, tables=TABLES, dim=8, batch=64, steps=6, dense="adagrad", rows="adagrad", gemm="fp32", row="fp32",
         rate=0.02, data="{type: synthetic}", extra="", loss=2e-5, weight=2e-2):
    """loss: relative; weight: of the largest move that `steps` steps of `rate` can make."""
    return dict(blocks=blocks % dict(dim=dim), tables=tables % dict(dim=dim), batch=batch, steps=steps, dense=dense, rows=rows,
                gemm=gemm, row=row, rate=rate, data=data, extra=extra, loss=loss, weight=weight)


CASES = {
    "dot_sgd": case(DOT, dense="sgd", rows="sgd"),
    "dot_adam_clip": case(DOT, dense="adam", rows="adam", rate=0.005, extra="clip_norm: 0.05\n"),
    "dot_momentum_rowwise": case(DOT, dense="momentum", rows="rowwise_adagrad", dim=32),
    "dot_rowwise_adam": case(DOT, dense="adam", rows="rowwise_adam", rate=0.005, dim=64),
    "cross_adagrad": case(CROSS, dim=128, batch=1000),
    "cross_short_batch": case(CROSS, batch=1000, data="{type: synthetic, samples: 3500}", steps=4),
    "zoo_adagrad": case(ZOO, dim=12, batch=300),
    "mixed_dims": case(CROSS % dict(dim=12), tables=MIXED, batch=777),
    "mixed_dims_rowwise": case(CROSS % dict(dim=12), tables=MIXED, batch=777, rows="rowwise_adagrad", extra="clip_norm: 0.1\n"),
    "hot_rows": case(CROSS % dict(dim=16), tables=HOT, batch=5000, steps=4),
    # Small ones, for compute-sanitizer.
    "small_cross": case(CROSS, dim=128, batch=96, steps=2),
    "small_mixed_dims": case(CROSS % dict(dim=12), tables=MIXED, batch=100, steps=2, extra="clip_norm: 0.1\n"),
    "small_bf16_dot": case(DOT, gemm="bf16", dim=16, batch=100, steps=2, loss=2e-2, weight=None),
    "reuse_bins": case(CROSS, data="{type: synthetic, reuse: meta_2022}", batch=500),
    "rows_bf16": case(CROSS, row="bf16", dim=16, loss=2e-3, weight=None),
    "rows_fp16": case(CROSS, row="fp16", dim=16, loss=2e-3, weight=None),
    "rows_int8": case(CROSS, row="int8", dim=16, loss=5e-3, weight=None),
    # Adagrad's first steps are the signs of gradients, which narrow products change where they are near zero.
    "tf32": case(CROSS, gemm="tf32", dim=128, batch=1000, dense="sgd", rows="sgd", loss=5e-4, weight=None),
    "bf16_cross": case(CROSS, gemm="bf16", dim=128, batch=1000, dense="sgd", rows="sgd", loss=5e-3, weight=None),
    "bf16_dot": case(DOT, gemm="bf16", dim=16, batch=512, loss=2e-2, weight=None),
    "bf16_zoo": case(ZOO, gemm="bf16", dim=12, batch=300, loss=3e-2, weight=None),
    "bf16_mixed_dims": case(CROSS % dict(dim=12), tables=MIXED, gemm="bf16", batch=777, loss=2e-2, weight=None),
}


# Go on from a checkpoint with the same bits, some of them with tables in host memory.
RESUMED = {
    "resumed_dot_adam_clip": (CASES["dot_adam_clip"], []),
    "resumed_bf16_cross": (CASES["bf16_cross"], []),
    "resumed_rows_int8": (CASES["rows_int8"], []),
    "resumed_cached": (CASES["cross_adagrad"], ["--device-memory", "CACHED"]),
}
# Rows that change hands all the time: ids without and with a law, other optimizers, 16-bit rows, mixed dimensions.
BIG = """
    - {name: a, rows: 60000, dim: %(dim)s, lookups: 2}
    - {name: b, rows: 30, dim: %(dim)s, lookups: 1, zipf_exponent: 1.1}
    - {name: c, rows: 90000, dim: %(dim)s, lookups: 3, zipf_exponent: 1.05}
"""
BIG_MIXED = """
    - {name: a, rows: 60000, dim: 20, lookups: 1.5}
    - {name: b, rows: 2, dim: 20, lookups: 3}
    - {name: c, rows: 30000, dim: 130, lookups: 2, zipf_exponent: 1.2}
    - {name: d, rows: 50, dim: 1, lookups: 1}
"""
CACHED = {
    "cached_adagrad": case(CROSS, tables=BIG, dim=128, batch=1000, steps=12),
    "cached_sgd_bf16": case(CROSS, tables=BIG, gemm="bf16", dim=64, batch=1000, steps=12, rows="sgd"),
    "cached_adam_clip": case(DOT, tables=BIG, dim=32, batch=500, steps=12, dense="adam", rows="adam", extra="clip_norm: 0.05\n"),
    "cached_rowwise": case(CROSS % dict(dim=12), tables=BIG_MIXED, batch=777, steps=12, rows="rowwise_adagrad"),
    "cached_rowwise_adam_lru": case(CROSS, tables=BIG, dim=16, batch=1000, steps=12, dense="adam", rows="rowwise_adam",
                                    rate=0.005) | {"policy": "lru"},
    "cached_rows_int8": case(CROSS, tables=BIG, row="int8", dim=16, batch=1000, steps=12),
    "cached_short_batch": case(CROSS, tables=BIG, dim=16, batch=1000, data="{type: synthetic, samples: 11500}", steps=12),
    # For compute-sanitizer.
    "cached_small": case(CROSS, tables=BIG, dim=32, batch=200, steps=3),
}
# Of the bytes of rows and states: caches that hold much, little, and less than a batch needs.
CACHED_SHARES = (0.4, 0.1, 0.003)


def read_safetensors(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        raw = data[8 + length + begin : 8 + length + end]
        tensors[name] = array("f", raw) if t["dtype"] == "F32" else raw
    return tensors


def run(binary, folder, c, device, *options):
    job, out = folder / "job.yaml", folder / f"{device}.json"
    job.write_text(
        "model:\n  model: m\n  dense_features: 5\n  tables:" + c["tables"] + "  blocks:" + c["blocks"]
        + "recipe: {recipe: r, local_batch: %(batch)d, precision: {gemm: %(gemm)s, activation: %(activation)s, embedding_row: %(row)s},"
        " embedding: {optimizer: %(rows)s, host_cache: %(policy)s}, execution: {dense_optimizer: %(dense)s}}\ndata: %(data)s\nlearning_rate: %(rate)r\n"
        "steps: %(steps)d\neval: {samples: 500, every: %(eval_every)d}\n%(extra)s" % dict({"policy": "lfu", "eval_every": 0}, **c, activation="bf16" if c["gemm"] == "bf16" else "fp32")
    )
    command = [binary, "train", str(job), "--device", device, "--export", str(folder / device), "--json", str(out), *options]
    if device == "cuda":
        command = os.environ.get("CHECK", "").split() + command
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return None, done.stdout[-2000:]
    if "--dry-run" in options:
        return json.loads(out.read_text()), {}
    return json.loads(out.read_text()), read_safetensors(folder / device)


def differences(c, cpu, gpu):
    """Good?, and how large: relative of the losses, and of the parameters where they are compared."""
    pairs = list(zip(cpu[0]["losses"], gpu[0]["losses"])) + [(cpu[0]["eval_loss"], gpu[0]["eval_loss"])]
    loss = max(abs(a - b) / abs(a) for a, b in pairs)
    good = len(pairs) == len(cpu[0]["losses"]) + 1 == len(gpu[0]["losses"]) + 1
    good = good and all(math.isfinite(b) for _, b in pairs) and loss <= c["loss"]
    text = f"loss {gpu[0]['losses'][-1]:.5f}, differs by {loss:.1e}"
    if c["weight"] is not None:
        worst = max(max(map(lambda x, y: abs(x - y), cpu[1][k], gpu[1][k])) for k in cpu[1])
        good = good and worst <= c["weight"] * c["rate"] * c["steps"]
        text += f", parameters by {worst:.1e}"
    return good, text


def compare(binary, name):
    """True and a line, or False and why."""
    c = CASES[name]
    with tempfile.TemporaryDirectory() as temporary:
        cpu, gpu = (run(binary, Path(temporary), c, d) for d in ("cpu", "cuda"))
        more = [] if os.environ.get("CHECK") else [run(binary, Path(temporary), c, "cuda", "--deterministic") for _ in range(2)]
    for done in (cpu, gpu, *more):
        if done[0] is None:
            return False, f"{name}: {done[1]}"
    good, text = differences(c, cpu, gpu)
    if more:
        same = more[0][0]["losses"] == more[1][0]["losses"] and more[0][1] == more[1][1]
        good_again, text_again = differences(c, cpu, more[0])
        good = good and good_again and same
        text += "; deterministic: " + text_again + (", the same again" if same else ", OTHER BITS THE SECOND TIME")
    return good, f"{name}: {text}"


def device_memory(binary, folder, c, share):
    """--device-memory with which the caches hold about `share` of the bytes of the tables."""
    whole = run(binary, folder, c, "cuda", "--dry-run")[0]["parts_bytes"]
    least = run(binary, folder, c, "cuda", "--dry-run", "--device-memory", "1")[0]["needed_bytes"]  # a set in each cache
    return str(int(least + share * sum(x for name, x in whole.items() if name.startswith("embedding"))))


def cached(binary, name):
    c = dict(CACHED[name], eval_every=5)
    texts = []
    with tempfile.TemporaryDirectory() as temporary:
        whole = None if os.environ.get("CHECK") else run(binary, Path(temporary), c, "cuda", "--deterministic")
        for share in CACHED_SHARES:
            options = ["--device-memory", device_memory(binary, Path(temporary), c, share), "--deterministic"]
            done = run(binary, Path(temporary), c, "cuda", *options)
            if done[0] is None or (whole and whole[0] is None):
                return False, f"{name}: {options}: {(done if done[0] is None else whole)[1]}"
            counts = done[0]["host_cache"]
            if counts["loaded"] == 0:
                return False, f"{name}: {options}: nothing was loaded"
            same = not whole or all(whole[0][k] == done[0][k] for k in ("losses", "eval_loss", "eval_auc")) and whole[1] == done[1]
            texts.append(f"{counts['slots']} of {counts['rows']} rows: {counts['loaded']} loaded, {counts['written_back']} back, "
                         f"{counts['bypassed']} bypassed" + ("" if same else ", OTHER BITS"))
            if not same:
                return False, f"{name}: " + "; ".join(texts)
    return True, f"{name}: the same bits; " + "; ".join(texts)


def resumed(binary, name):
    c, options = RESUMED[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        options = [device_memory(binary, folder, c, 0.1) if o == "CACHED" else o for o in options] + ["--deterministic"]
        straight = run(binary, folder, c, "cuda", *options)
        kept = dict(c, extra=c["extra"] + f"checkpoint: {{folder: {folder}/kept}}\n")
        half = run(binary, folder, kept, "cuda", "--steps", str(c["steps"] // 2), *options)
        rest = run(binary, folder, kept, "cuda", *options)
    for done in (straight, half, rest):
        if done[0] is None:
            return False, f"{name}: {done[1]}"
    same = straight[0]["losses"] == half[0]["losses"] + rest[0]["losses"] and straight[1] == rest[1]
    same = same and straight[0]["eval_loss"] == rest[0]["eval_loss"] and len(rest[0]["losses"]) == c["steps"] - c["steps"] // 2
    return same, f"{name}: {'the same bits as without a stop' if same else 'OTHER BITS after a stop'}"


def compare_case(binary, name):
    return (cached if name in CACHED else resumed if name in RESUMED else compare)(binary, name)


def main():
    binary, failed = sys.argv[1], 0
    names = sys.argv[2:] or [*CASES, *RESUMED, *CACHED]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for future in concurrent.futures.as_completed([pool.submit(compare_case, binary, name) for name in names]):
            good, text = future.result()
            failed += not good
            print("ok" if good else "FAILED", text, flush=True)
    print(f"{len(names) - failed} of {len(names)} cases agree")
    sys.exit(1 if failed else 0)


main()
