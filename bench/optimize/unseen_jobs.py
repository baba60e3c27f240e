#!/usr/bin/env python3
"""unseen_jobs.py PORTOLAN --calibration DIR --seed S [--count 6] [--steps N] [--only K,...] [--phases] [--keep DIR]

Draws recommendation jobs from a seed (tables, reuse, interaction, optimizers, clipping, batch, what may change of the
maths), runs `optimize` on each, and prints predicted and measured steps, errors, gain and quality. Jobs of a seed that
nobody has looked at say how far prices and gains carry. Data are generated, with a teacher that can be learnt.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

MAX_TABLE_BYTES = 150e6  # fp32 rows, before optimizer states
MAX_STEP_S = 0.06        # of a rough guess: two recipes and every change alone are to be measured in seconds


def draw(rng):
    """One job as (description, YAML, rough seconds a step)."""
    dim = rng.choice([16, 24, 32, 48, 64, 96, 128])
    table_count = round(math.exp(rng.uniform(math.log(3), math.log(60))))
    batch = rng.choice([256, 384, 512, 1000, 1024, 2048, 3000, 4096, 8192])
    reuse = rng.choice(["zipf", "zipf", "uniform", "meta_2022"])
    interaction = rng.choice(["dot", "cross", "cross"] if table_count <= 26 else ["dot", "dot", "cross"])
    row_optimizer = rng.choice(["sgd", "adagrad", "rowwise_adagrad", "adam", "rowwise_adam"])
    dense_optimizer = "adam" if "adam" in row_optimizer else rng.choice(["sgd", "adagrad", "adam"])
    clip = rng.random() < 0.4
    allow = rng.choice([[], [], ["gemm_dtype"], ["gemm_dtype", "row_dtype"]])
    activation = rng.choice(["relu", "relu", "relu", "silu"])
    tables, left, lookups_all, bytes_all = [], table_count, 0, 0
    groups = min(table_count, rng.randint(1, 4))
    for group in range(groups):
        count = left if group == groups - 1 else rng.randint(1, left - (groups - 1 - group))
        left -= count
        rows = round(math.exp(rng.uniform(math.log(100), math.log(1e6))))
        lookups = rng.choice([1, 1, 1, 2, 3, 8])
        exponent = f", zipf_exponent: {rng.uniform(0.8, 1.3):.2f}" if reuse == "zipf" else ""
        tables.append(f"    - {{name: t{group}, rows: {rows}, dim: {dim}, lookups: {lookups}, count: {count}{exponent}}}")
        lookups_all += lookups * count
        bytes_all += 4 * rows * dim * count
    bottom = [rng.choice([64, 128, 200, 256, 512]) for _ in range(rng.randint(0, 2))] + [dim]
    top = [rng.choice([64, 100, 128, 256, 320, 512]) for _ in range(rng.randint(1, 3))] + [1]
    blocks = [f"    - {{name: bottom, type: mlp, input: dense, widths: {bottom}, activation: {activation}}}"]
    if interaction == "dot":
        width = dim + table_count * (table_count + 1) // 2
        blocks.append("    - {name: mixed, type: dot_interaction, inputs: [bottom, embeddings]}")
        flops = 2 * (table_count + 1) ** 2 * dim
    else:
        width = dim * (table_count + 1)
        layers, rank = rng.randint(1, 3), rng.choice([32, 64, 128])
        blocks.append("    - {name: joined, type: concat, inputs: [bottom, embeddings]}")
        blocks.append(f"    - {{name: mixed, type: low_rank_cross, input: joined, layers: {layers}, rank: {rank}}}")
        flops = 2 * layers * 2 * width * rank
    blocks.append(f"    - {{name: top, type: mlp, input: mixed, widths: {top}, activation: {activation}, "
                  "last_activation: none}")
    for a, b in list(zip([13] + bottom, bottom)) + list(zip([width] + top, top)):
        flops += 2 * a * b
    seconds = batch * (3 * flops / 150e9 + lookups_all * dim * 4 * 4 / 8e9)
    rate = 0.001 if "adam" in (row_optimizer, dense_optimizer) or "rowwise_adam" == row_optimizer else 0.01
    text = "\n".join(
        ["model:", "  model: drawn", "  dense_features: 13", "  tables:"] + tables + ["  blocks:"] + blocks +
        [f"  training: {{dense_optimizer: {dense_optimizer}, embedding_optimizer: {row_optimizer}}}",
         f"recipe: {{recipe: r, local_batch: {batch}, precision: {{gemm: fp32, activation: fp32, embedding_row: fp32}}}}",
         "data: {type: synthetic" + (", reuse: meta_2022" if reuse == "meta_2022" else "") + ", signal: 1.5}",
         "steps: 1000", f"learning_rate: {{rate: {rate}, embedding: {0.001 if 'adam' in row_optimizer[-4:] else 0.05}}}",
         f"allow: [{', '.join(allow)}]", "eval: {samples: 8192}"] + (["clip_norm: 1"] if clip else [])) + "\n"
    what = (f"{table_count} x {dim}, {lookups_all} lookups, batch {batch}, {reuse}, {interaction}, {row_optimizer}/"
            f"{dense_optimizer}{', clipped' if clip else ''}{', ' + '+'.join(allow) if allow else ''}")
    return what, text, seconds if bytes_all <= MAX_TABLE_BYTES else math.inf


def draw_jobs(seed, count):
    rng = random.Random(seed)
    jobs = []
    while len(jobs) < count:
        what, text, seconds = draw(rng)
        if seconds <= MAX_STEP_S:
            jobs.append((what, text, seconds))
    return jobs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("portolan")
    parser.add_argument("--calibration", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--only", default="", help="numbers of jobs, from 0")
    parser.add_argument("--seconds", type=float, default=5, help="about so long a job")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--keep", help="folder for the jobs and the documents")
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    only = {int(k) for k in args.only.split(",") if k}
    gains = []
    for k, (what, text, seconds) in enumerate(draw_jobs(args.seed, args.count)):
        if only and k not in only:
            continue
        job, document = f"{folder}/{args.seed}_{k}.yaml", f"{folder}/{args.seed}_{k}.json"
        with open(job, "w") as out:
            out.write(text)
        steps = max(24, min(1000, round(args.seconds / 4 / seconds)))
        done = subprocess.run([args.portolan, "optimize", job, "--calibration", args.calibration, "--steps", str(steps),
                               "--json", document], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{k} {what}: {done.stderr.strip()}")
            continue
        with open(document) as source:
            r = json.load(source)
        base, best = r["baseline"], r["codesigned"]
        gains.append(r["measured_speedup"])
        print(f"{k} {what}\n    port {base['predicted_step_time_s'] * 1e3:.3f} / {base['measured_step_time_s'] * 1e3:.3f} ms "
              f"{100 * base['prediction_error']:+.1f} %, co-designed {best['predicted_step_time_s'] * 1e3:.3f} / "
              f"{best['measured_step_time_s'] * 1e3:.3f} ms {100 * best['prediction_error']:+.1f} %, gain "
              f"{r['measured_speedup']:.2f} ({r['predicted_speedup']:.2f}), AUC {base['auc']:.4f} {best['auc']:.4f}, "
              f"spread {100 * base['spread']:.0f}/{100 * best['spread']:.0f} %; slower "
              + " ".join(f"{x:.2f}" for x in r["slowdown_since_calibration"].values()), flush=True)
        print("    " + " ".join(f"{c['rule']}={c['option']}" for c in r["changes"]))
        if args.phases:
            for name, phase in base["phases"].items():
                other = best["phases"][name]
                if phase["measured_s"] <= 0:
                    continue
                print(f"      {name:<20}" + "".join(
                    f"{p['predicted_s'] * 1e6:10.0f} {p['measured_s'] * 1e6:8.0f} us "
                    f"{100 * (p['predicted_s'] / max(p['measured_s'], 1e-9) - 1):+6.1f} %" for p in (phase, other)))
    if gains:
        print(f"gains: {min(gains):.2f} to {max(gains):.2f}, "
              f"{math.exp(sum(math.log(g) for g in gains) / len(gains)):.2f} in the geometric mean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
