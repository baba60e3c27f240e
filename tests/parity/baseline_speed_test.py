#!/usr/bin/env python3
"""baseline_speed_test.py BINARY: the plain port that `optimize` compares with takes at most 1.1 times PyTorch's step.

The same DLRM, Adagrad, batches and threads in both (bench/train/train_cpu.py's model: one merged EmbeddingBag with sparse
gradients, which is PyTorch's fast way), in turns; medians of the steps of each round, then of the rounds' ratios. Exit
code 77: no torch, nothing compared.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "train"))
try:
    import torch
    import train_cpu
except ImportError as error:
    print(f"SKIPPED the baseline against PyTorch: {sys.executable} has no torch ({error})", file=sys.stderr)
    sys.exit(77)

LIMIT, ROUNDS, STEPS, THREADS = 1.1, 3, 24, min(os.cpu_count() or 1, 4)
PORT = ", embedding: {optimizer: adagrad, kernels: per_table, update: separate}, execution: {dense_optimizer: adagrad, fusion: eager}"
CASES = [
    dict(name="small", tables=[("a", 100000, 1), ("b", 20000, 2), ("c", 500, 1), ("d", 500, 1)], dense=13, dim=32,
         bottom=[128, 32], top=[128, 64, 1], batch=1024, rate=0.02, row_rate=0.02),
    dict(name="wide", tables=[(f"t{i}", 100000, 1) for i in range(12)], dense=13, dim=64, bottom=[256, 64],
         top=[256, 128, 1], batch=2048, rate=0.02, row_rate=0.02),
]


def job(case, data, steps):
    tables = "".join(f"    - {{name: {n}, rows: {r}, dim: {case['dim']}, lookups: {l}, zipf_exponent: 1.05}}\n" for n, r, l in case["tables"])
    return (
        f"model:\n  model: bench\n  dense_features: {case['dense']}\n  tables:\n{tables}  blocks:\n"
        f"    - {{name: bottom, type: mlp, input: dense, widths: {case['bottom']}}}\n"
        "    - {name: interaction, type: dot_interaction, inputs: [bottom, embeddings]}\n"
        f"    - {{name: top, type: mlp, input: interaction, widths: {case['top']}, last_activation: none}}\n"
        f"recipe: {{recipe: r, local_batch: {case['batch']}, precision: {{gemm: fp32, activation: fp32}}{PORT}}}\n"
        f"data: {data}\nsteps: {steps}\nlearning_rate: {case['rate']}\neval: {{samples: 0}}\n")


def step_seconds(trace):
    """Median over the steps of the sum of a step's phases."""
    events = json.loads(Path(trace).read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    steps = {}
    for event in events:
        steps.setdefault(event["args"]["step"], []).append(event["dur"])
    return statistics.median(sum(durations) for durations in steps.values()) * 1e-6


def main():
    binary, failed = os.path.abspath(sys.argv[1]), False
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
    torch.set_num_threads(THREADS)
    for case in CASES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "job.yaml").write_text(job(case, "{type: synthetic, seed: 3}", 8))
            subprocess.run([binary, "train", str(folder / "job.yaml"), "--export-batches", str(folder / "b"), "--dry-run"], check=True, stdout=subprocess.DEVNULL)
            batches = train_cpu.read_batches(folder / "b")
            (folder / "job.yaml").write_text(job(case, f"{{type: batches, file: {folder / 'b'}}}", STEPS))
            ratios = []
            for _ in range(ROUNDS):
                rate, _ = train_cpu.torch_run(case, batches, batches[:1], STEPS, False)
                subprocess.run([binary, "train", str(folder / "job.yaml"), "--trace", str(folder / "trace")], check=True, env=environment, stdout=subprocess.DEVNULL)
                ratios.append(step_seconds(folder / "trace") / (case["batch"] / rate))
            ratio = statistics.median(ratios)
            print(f"{case['name']}: the plain port takes {ratio:.2f} of PyTorch {torch.__version__}'s step ({THREADS} threads; rounds {', '.join(f'{r:.2f}' for r in ratios)}); at most {LIMIT}")
            failed = failed or ratio > LIMIT
    sys.exit(1 if failed else 0)


main()
