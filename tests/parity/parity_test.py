#!/usr/bin/env python3
"""parity_test.py BINARY [DEVICE]: the same parameters and batches through `portolan train` (on DEVICE) and PyTorch.

For each case the binary writes its initial parameters, the batches, and its parameters after 1 and 10 steps; PyTorch
starts from the first and takes the same steps. Compared: every loss, the gradients (what one SGD step of rate 1
subtracts), and all parameters after ten steps of each optimizer. Exit code 77: no torch, nothing compared.
"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    print(f"SKIPPED parity with PyTorch: {sys.executable} has no torch ({error})", file=sys.stderr)
    sys.exit(77)

STEPS, BATCH = 10, 64
DENSE = 5
TABLES = [("a", 200, 2), ("b", 30, 1), ("c", 1000, 3)]
DIM = 8
HEAD = """
model:
  model: parity
  dense_features: 5
  tables:
    - {name: a, rows: 200, dim: 8, lookups: 2}
    - {name: b, rows: 30, dim: 8, lookups: 1, zipf_exponent: 1.1}
    - {name: c, rows: 1000, dim: 8, lookups: 3}
  blocks:
"""
DOT = """
    - {name: bottom, type: mlp, input: dense, widths: [16, 8]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [16, 1], last_activation: none}
"""
CROSS = """
    - {name: bottom, type: mlp, input: dense, widths: [16, 8], activation: gelu, last_activation: silu}
    - {name: joined, type: concat, inputs: [bottom, embeddings]}
    - {name: cross, type: low_rank_cross, input: joined, layers: 2, rank: 4}
    - {name: norm, type: norm, input: cross}
    - {name: top, type: mlp, input: norm, widths: [16, 1], last_activation: none}
"""


def read_safetensors(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "I64": np.int64}
    return {
        name: np.frombuffer(data[8 + length + t["data_offsets"][0] : 8 + length + t["data_offsets"][1]], types[t["dtype"]])
        .reshape(t["shape"])
        .copy()
        for name, t in header.items()
    }


class Model(nn.Module):
    def __init__(self, weights, cross):
        super().__init__()
        self.cross = cross
        self.w = nn.ParameterDict({k.replace(".", "_"): nn.Parameter(torch.from_numpy(v)) for k, v in weights.items() if not k.startswith("table.")})
        self.tables = nn.ModuleList()
        for name, rows, _ in TABLES:
            bag = nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True, include_last_offset=True)
            bag.weight = nn.Parameter(torch.from_numpy(weights["table." + name]))
            self.tables.append(bag)

    def linear(self, x, name):
        return F.linear(x, self.w[name + "_weight"], self.w[name + "_bias"])

    def forward(self, dense, ids, offsets):
        pooled = []
        for f, bag in enumerate(self.tables):
            o = offsets[f * BATCH : (f + 1) * BATCH + 1]
            pooled.append(bag(ids[o[0] : o[-1]], o - o[0]))
        h = self.linear(dense, "bottom_0")
        h = F.gelu(h) if self.cross else F.relu(h)
        h = self.linear(h, "bottom_1")
        h = F.silu(h) if self.cross else F.relu(h)
        if self.cross:
            x0 = x = torch.cat([h] + pooled, dim=1)
            for l in range(2):
                u = F.linear(F.linear(x, self.w[f"cross_{l}_v"]), self.w[f"cross_{l}_u"])
                x = x0 * (u + self.w[f"cross_{l}_bias"]) + x
            x = F.layer_norm(x, x.shape[1:], self.w["norm_gamma"], self.w["norm_beta"])
        else:
            v = torch.stack([h] + pooled, dim=1)
            i, j = torch.triu_indices(v.shape[1], v.shape[1], offset=1)
            x = torch.cat([h, torch.bmm(v, v.transpose(1, 2))[:, i, j]], dim=1)
        return self.linear(F.relu(self.linear(x, "top_0")), "top_1").squeeze(1)


class RowwiseAdagrad:
    """FBGEMM's exact row-wise Adagrad on coalesced sparse gradients."""

    def __init__(self, params, lr, eps):
        self.params, self.lr, self.eps = list(params), lr, eps
        self.state = [torch.zeros(p.shape[0]) for p in self.params]

    def step(self):
        for p, s in zip(self.params, self.state):
            g = p.grad.coalesce()
            rows, g = g.indices()[0], g.values()
            s[rows] += (g * g).mean(dim=1)
            p.data[rows] -= self.lr * g / (s[rows].sqrt() + self.eps)[:, None]


class LazyAdam:
    """Adam (arXiv 1412.6980) of the rows looked up. torch.optim.SparseAdam adds epsilon before the second correction."""

    def __init__(self, params, lr, eps):
        self.params, self.lr, self.eps, self.t = list(params), lr, eps, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    def step(self):
        self.t += 1
        for p, m, v in zip(self.params, self.m, self.v):
            g = p.grad.coalesce()
            rows, g = g.indices()[0], g.values()
            m[rows] = 0.9 * m[rows] + 0.1 * g
            v[rows] = 0.999 * v[rows] + 0.001 * g * g
            p.data[rows] -= self.lr * (m[rows] / (1 - 0.9**self.t)) / ((v[rows] / (1 - 0.999**self.t)).sqrt() + self.eps)


def optimizers(name, model):
    dense, rows = list(model.w.values()), [t.weight for t in model.tables]
    lr = {"sgd": 0.05, "momentum": 0.05, "adagrad": 0.02, "adam": 0.005}[name]
    if name == "sgd":
        return lr, "sgd", "sgd", [torch.optim.SGD(dense, lr), torch.optim.SGD(rows, lr)]
    if name == "momentum":
        return lr, "momentum", "rowwise_adagrad", [torch.optim.SGD(dense, lr, momentum=0.9), RowwiseAdagrad(rows, lr, 1e-8)]
    if name == "adagrad":
        return lr, "adagrad", "adagrad", [torch.optim.Adagrad(dense, lr, eps=1e-8), torch.optim.Adagrad(rows, lr, eps=1e-8)]
    return lr, "adam", "adam", [torch.optim.Adam(dense, lr, eps=1e-8), LazyAdam(rows, lr, 1e-8)]


def run(binary, folder, blocks, dense, rows, rate, steps, out, batches=None):
    job = folder / "job.yaml"
    job.write_text(
        HEAD + blocks + "recipe: {recipe: r, local_batch: %d, precision: {gemm: fp32, activation: fp32}, embedding: {optimizer: %s},"
        " execution: {dense_optimizer: %s}}\ndata: {type: synthetic}\nlearning_rate: %r\nsteps: %d\neval: {samples: 0}\n"
        % (BATCH, rows, dense, rate, steps)
    )
    command = [binary, "train", str(job), "--export", str(out), "--json", str(folder / "out.json")]
    command += ["--device", sys.argv[2]] if len(sys.argv) > 2 else []
    if batches:
        command += ["--export-batches", str(batches)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "out.json").read_text())["losses"]


def main():
    binary, failed = sys.argv[1], 0
    torch.manual_seed(0)
    for shape, blocks in (("dot", DOT), ("cross", CROSS)):
        for name in ("sgd", "momentum", "adagrad", "adam"):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                # Nothing trains in 0 steps: the parameters that every run starts from.
                run(binary, folder, blocks, "sgd", "sgd", 1.0, 0, folder / "w0")
                start = read_safetensors(folder / "w0")
                model = Model(start, shape == "cross")
                lr, dense, rows, steppers = optimizers(name, model)
                ours = run(binary, folder, blocks, dense, rows, lr, STEPS, folder / "w10", folder / "batches")
                batches, end = read_safetensors(folder / "batches"), read_safetensors(folder / "w10")
                run(binary, folder, blocks, "sgd", "sgd", 1.0, 1, folder / "w1")
                one = read_safetensors(folder / "w1")
                worst_loss = worst_gradient = 0.0
                named = {k: model.w[k.replace(".", "_")] for k in start if not k.startswith("table.")}
                named.update({"table." + t[0]: m.weight for t, m in zip(TABLES, model.tables)})
                for step in range(STEPS):
                    dense_in, labels, ids, offsets = (torch.from_numpy(batches[f"batch.{step}.{k}"]) for k in ("dense", "labels", "ids", "offsets"))
                    for p in model.parameters():
                        p.grad = None
                    loss = F.binary_cross_entropy_with_logits(model(dense_in, ids, offsets), labels)
                    loss.backward()
                    worst_loss = max(worst_loss, abs(loss.item() - ours[step]) / abs(ours[step]))
                    if step == 0:
                        for k, p in named.items():
                            g = p.grad.to_dense().numpy() if p.grad.is_sparse else p.grad.numpy()
                            worst_gradient = max(worst_gradient, np.abs((start[k] - one[k]) - g).max() / max(np.abs(g).max(), 1e-3))
                    for stepper in steppers:
                        stepper.step()
                worst_weight = max(np.abs(end[k] - p.detach().numpy()).max() for k, p in named.items())
                # Gradients: start - one loses the last bits of start, up to 1.2e-7 against gradients of 1e-2 and more.
                # Parameters move by up to rate a step; Adam divides gradients near zero by their own size, which turns
                # their rounding into a share of the rate.
                limits = (2e-6, 2e-4, lr * (2e-4 if name in ("sgd", "momentum") else 2e-2))
                good = worst_loss < limits[0] * (10 if name == "adam" else 1) and worst_gradient < limits[1] and worst_weight < limits[2]
                failed += not good
                print(f"{'ok' if good else 'FAILED'} {shape} {name}: loss {worst_loss:.2e} gradient {worst_gradient:.2e} "
                      f"parameters after {STEPS} steps {worst_weight:.2e}")
    sys.exit(1 if failed else 0)


main()
