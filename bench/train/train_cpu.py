#!/usr/bin/env python3
"""train_cpu.py BINARY [--steps N] [--ratings DIR] [--threads T]: DLRM training, `portolan train` against PyTorch.

The same model, the same batches (read from memory on both sides), Adagrad on both sides, the same threads, one run after
the other in turn. PyTorch: one merged EmbeddingBag with sparse gradients, addmm MLPs, bmm interaction; the better of
fp32 and bf16 autocast. Prints samples/s of both, their ratio, and the AUC on batches that neither trained on.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def write_safetensors(path, tensors):
    header, at = {}, 0
    names = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    for name, value in tensors.items():
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            out.write(value.tobytes())


def read_batches(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "I64": np.int64}
    view = {
        k: np.frombuffer(data, types[t["dtype"]], offset=8 + length + t["data_offsets"][0],
                         count=(t["data_offsets"][1] - t["data_offsets"][0]) // np.dtype(types[t["dtype"]]).itemsize).reshape(t["shape"])
        for k, t in header.items()
    }
    count = len({k.split(".")[1] for k in view})
    return [{p: torch.from_numpy(view[f"batch.{i}.{p}"].copy()) for p in ("dense", "labels", "ids", "offsets")} for i in range(count)]


def auc(scores, labels):
    order = np.argsort(scores, kind="mergesort")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positives = labels.sum()
    return (ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))


class Dlrm(nn.Module):
    def __init__(self, tables, dense, dim, bottom, top):
        super().__init__()
        self.rows = [t[1] for t in tables]
        self.first = np.concatenate([[0], np.cumsum(self.rows)])
        self.bag = nn.EmbeddingBag(int(self.first[-1]), dim, mode="sum", sparse=True, include_last_offset=True)
        with torch.no_grad():
            for t, rows in enumerate(self.rows):
                self.bag.weight[self.first[t] : self.first[t + 1]].uniform_(-(rows**-0.5), rows**-0.5)
        def mlp(widths):
            layers = []
            for i, o in zip(widths[:-1], widths[1:]):
                layer = nn.Linear(i, o)
                nn.init.normal_(layer.weight, 0, (2 / (i + o)) ** 0.5)
                nn.init.normal_(layer.bias, 0, (1 / o) ** 0.5)
                layers.append(layer)
            return nn.ModuleList(layers)
        self.bottom = mlp([dense] + bottom)
        vectors = len(tables) + 1
        self.top = mlp([dim + vectors * (vectors - 1) // 2] + top)
        self.i, self.j = torch.triu_indices(vectors, vectors, offset=1)
        self.dim, self.features = dim, len(tables)

    def prepare(self, batch):
        """Global row ids of the merged table; outside the timed loop."""
        size = len(batch["labels"])
        ids = batch["ids"].clone()
        for f in range(self.features):
            a, b = batch["offsets"][f * size], batch["offsets"][(f + 1) * size]
            ids[a:b] += int(self.first[f])
        return {**batch, "ids": ids}

    def forward(self, batch):
        size = len(batch["labels"])
        pooled = self.bag(batch["ids"], batch["offsets"]).view(self.features, size, self.dim).transpose(0, 1)
        h = batch["dense"]
        for layer in self.bottom:
            h = F.relu(layer(h))
        v = torch.cat([h.unsqueeze(1), pooled.to(h.dtype)], dim=1)
        x = torch.cat([h, torch.bmm(v, v.transpose(1, 2))[:, self.i, self.j]], dim=1)
        for n, layer in enumerate(self.top):
            x = layer(x)
            if n + 1 < len(self.top):
                x = F.relu(x)
        return x.squeeze(1)


def torch_run(case, train, evaluation, steps, bf16):
    torch.manual_seed(0)
    model = Dlrm(case["tables"], case["dense"], case["dim"], case["bottom"], case["top"])
    dense = [p for n, p in model.named_parameters() if not n.startswith("bag")]
    optimizers = [torch.optim.Adagrad(dense, case["rate"], eps=1e-8), torch.optim.Adagrad([model.bag.weight], case["row_rate"], eps=1e-8)]
    batches = [model.prepare(b) for b in train]
    times = []
    for step in range(steps):
        begin = time.perf_counter()
        batch = batches[step % len(batches)]
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = model(batch)
        F.binary_cross_entropy_with_logits(logits.float(), batch["labels"]).backward()
        for optimizer in optimizers:
            optimizer.step()
        times.append(time.perf_counter() - begin)
    with torch.no_grad():
        scores = np.concatenate([model(model.prepare(b)).numpy() for b in evaluation])
    labels = np.concatenate([b["labels"].numpy() for b in evaluation])
    size = len(train[0]["labels"])
    return size / statistics.median(times), auc(scores, labels)


def portolan_run(binary, case, folder, steps, threads, precision="fp32"):
    blocks = f"""
    - {{name: bottom, type: mlp, input: dense, widths: {case['bottom']}}}
    - {{name: interaction, type: dot_interaction, inputs: [bottom, embeddings]}}
    - {{name: top, type: mlp, input: interaction, widths: {case['top']}, last_activation: none}}
"""
    tables = "".join(f"    - {{name: {n}, rows: {r}, dim: {case['dim']}, lookups: {l}, zipf_exponent: {case['zipf']}}}\n" for n, r, l in case["tables"])
    def job(data, export=""):
        path = folder / "job.yaml"
        path.write_text(
            f"model:\n  model: bench\n  dense_features: {case['dense']}\n  tables:\n{tables}  blocks:{blocks}"
            f"recipe: {{recipe: r, local_batch: {case['batch']}, precision: {{gemm: {precision}, activation: fp32}}, embedding: {{optimizer: adagrad}}, execution: {{dense_optimizer: adagrad}}}}\n"
            f"data: {data}\nsteps: {steps}\nlearning_rate: {{rate: {case['rate']}, embedding: {case['row_rate']}}}\nreport_every: 10\n"
            f"eval: {{samples: {case['eval_samples']}}}\n" + export)
        return path
    return job, blocks


def median_rate(log):
    rates = []
    for line in log.splitlines():
        if line.startswith("step "):
            ms = float(line.split("  ")[-2].split()[0]) if " ms" in line else 0
            for part in line.split("  "):
                if part.endswith(" ms"):
                    ms = float(part[:-3])
            rates.append(ms)
    return statistics.median(rates)


def generated(args, folder):
    case = dict(name="generated", tables=[(f"t{i}", r, l) for i, (r, l) in enumerate([(400000, 1), (400000, 4), (100000, 2), (100000, 1), (10000, 1), (10000, 3), (1000, 1), (100, 1)])],
                dense=13, dim=64, bottom=[256, 64], top=[256, 128, 1], batch=2048, rate=0.02, row_rate=0.02, zipf=1.05, eval_samples=0)
    job, _ = portolan_run(args.binary, case, folder, args.batches + args.eval_batches, args.threads)
    path = job("{type: synthetic, seed: 3}")
    subprocess.run([args.binary, "train", str(path), "--steps", str(args.batches + args.eval_batches), "--export-batches", str(folder / "all"), "--dry-run"],
                   check=True, stdout=subprocess.DEVNULL)
    return case, read_batches(folder / "all")


def movietweetings(args, folder):
    """Rating of 8 and more as label; features: user, movie and the movie's genres; in time order."""
    directory = Path(args.ratings)
    rows = [line.split("::") for line in (directory / "ratings.dat").read_text().splitlines()]
    rows.sort(key=lambda r: int(r[3]))
    movies = [line.split("::") for line in (directory / "movies.dat").read_text(encoding="utf-8").splitlines()]
    genre_of = {m[0]: [g for g in m[2].split("|") if g] for m in movies}
    number = lambda values: {v: i for i, v in enumerate(sorted(set(values)))}
    users, films = number(r[0] for r in rows), number(r[1] for r in rows)
    genres = number(g for gs in genre_of.values() for g in gs)
    case = dict(name="MovieTweetings", tables=[("user", len(users), 1), ("movie", len(films), 1), ("genre", len(genres), 2)], dense=1, dim=32,
                bottom=[32, 32], top=[64, 1], batch=1024, rate=0.02, row_rate=0.05, zipf=0, eval_samples=0)
    batches = []
    for first in range(0, len(rows) - case["batch"] + 1, case["batch"]):
        part = rows[first : first + case["batch"]]
        ids, offsets = [], [0]
        for column in ([[users[r[0]]] for r in part], [[films[r[1]]] for r in part], [[genres[g] for g in genre_of.get(r[1], [])] for r in part]):
            for bag in column:
                ids += bag
                offsets.append(len(ids))
        batches.append(dict(dense=torch.ones(case["batch"], 1), labels=torch.tensor([float(int(r[2]) >= 8) for r in part]), ids=torch.tensor(ids), offsets=torch.tensor(offsets)))
    return case, batches


def compare(args, case, batches, folder):
    train, evaluation = batches[: -args.eval_batches], batches[-args.eval_batches :]
    def save(name, part):
        write_safetensors(folder / name, {f"batch.{i}.{k}": v.numpy() for i, b in enumerate(part) for k, v in b.items()})
    save("train", train)
    save("eval", evaluation)
    job, _ = portolan_run(args.binary, case, folder, args.steps, args.threads)
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    ours, theirs = [], {False: [], True: []}
    our_auc = their_auc = 0
    for _ in range(args.rounds):
        path = job(f"{{type: batches, file: {folder / 'train'}}}")
        log = subprocess.run([args.binary, "train", str(path), "--steps", str(args.steps), "--export", str(folder / "w")], check=True, env=environment,
                             capture_output=True, text=True).stdout
        ours.append(case["batch"] / median_rate(log) * 1e3)
        for bf16 in (False, True):
            rate, area = torch_run(case, train, evaluation, args.steps if not bf16 else max(args.steps // 10, 10), bf16)
            theirs[bf16].append(rate)
            if not bf16:
                their_auc = area
    # Evaluation: the trained parameters on the held-out batches, no step taken.
    text = job(f"{{type: batches, file: {folder / 'eval'}}}").read_text()
    text = text.replace("eval: {samples: 0}", f"eval: {{samples: {args.eval_batches * case['batch']}}}")
    (folder / "eval.yaml").write_text(text)
    subprocess.run([args.binary, "train", str(folder / "eval.yaml"), "--steps", "0", "--import", str(folder / "w"), "--json", str(folder / "o.json")],
                   check=True, stdout=subprocess.DEVNULL, env=environment)
    our_auc = json.loads((folder / "o.json").read_text())["eval_auc"]
    mine, fp32, half = (statistics.median(v) for v in (ours, theirs[False], theirs[True]))
    print(f"{case['name']}: portolan {mine:,.0f} samples/s, torch fp32 {fp32:,.0f}, torch bf16 {half:,.0f}; ratio {mine / max(fp32, half):.2f} "
          f"(rounds {', '.join(f'{a / max(b, c):.2f}' for a, b, c in zip(ours, theirs[False], theirs[True]))}); AUC {our_auc:.4f} and {their_auc:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--eval-batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ratings", help="folder of MovieTweetings' ratings.dat and movies.dat")
    args = parser.parse_args()
    args.binary = os.path.abspath(args.binary)
    torch.set_num_threads(args.threads)
    for make in [generated] + ([movietweetings] if args.ratings else []):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            case, batches = make(args, folder)
            compare(args, case, batches, folder)


if __name__ == "__main__":
    main()
