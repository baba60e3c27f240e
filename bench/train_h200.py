#!/usr/bin/env python3
"""train_h200.py BINARY --out FILE: DCNv2 with `portolan train --device cuda` and with PyTorch, in turns on one GPU.

The model is MLPerf's DCNv2 with its 26 tables capped at --rows rows: dimension 128 in fp32, 214 lookups a sample, ids by
a Zipf law with exponent 1.05. Both train on the same batches, which lie on the device; labels are drawn from a hidden
teacher. PyTorch has one merged EmbeddingBag with sparse gradients, and its dense part compiled where the case says so.

Quality: the mean loss over the last third of the first pass over the batches, which are then all new to both, must agree
to --quality (relative). Speed: rounds of --steps steps, the two in turns; medians. Memory: what the device has less while
each runs. Everything is written to FILE after each case: date, driver, clocks, versions, commands' figures. Needs torch.
"""
import argparse
import datetime
import json
import math
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROWS = [40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976,
        14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36]
LOOKUPS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]
ZIPF, DIM, DENSE, CROSS, RANK = 1.05, 128, 13, 3, 512
BOTTOM, TOP = [512, 256, 128], [1024, 1024, 512, 256, 1]
RATE, ROW_RATE = 0.0003, 0.01  # of dense parameters and of rows
# Cases of PyTorch: dense precision, compiled, optimizer of the tables.
TORCH = {
    "bf16_compile_sgd": ("bf16", True, "sgd"),
    "bf16_compile_adagrad": ("bf16", True, "adagrad"),
    "tf32_eager_adagrad": ("tf32", False, "adagrad"),
}
OURS = {"bf16_adagrad": ("bf16", "adagrad"), "bf16_sgd": ("bf16", "sgd"), "tf32_adagrad": ("tf32", "adagrad")}
# Which of ours must be as good as which of PyTorch's.
QUALITY = {"bf16_adagrad": "bf16_compile_adagrad", "bf16_sgd": "bf16_compile_sgd", "tf32_adagrad": "tf32_eager_adagrad"}


def make_batches(rows, batch, count, device, zipf=ZIPF):
    """Yields {dense, labels, ids, offsets} on the device; ids feature by feature, sample by sample."""
    teacher = torch.Generator(device).manual_seed(1)
    dense_teacher = torch.randn(DENSE, generator=teacher, device=device)
    draw = torch.Generator(device).manual_seed(2)
    offsets = [torch.zeros(1, dtype=torch.int64, device=device)]
    for h in LOOKUPS:
        offsets.append(offsets[-1][-1] + h * torch.arange(1, batch + 1, device=device))
    offsets = torch.cat(offsets)
    for _ in range(count):
        dense = torch.randn(batch, DENSE, generator=draw, device=device)
        logit = dense @ dense_teacher * 0.3
        ids = []
        for t, (n, h) in enumerate(zip(rows, LOOKUPS)):
            u = torch.rand(batch * h, generator=draw, device=device, dtype=torch.float64)
            if zipf == 0:
                rank = (u * n).long()
            else:
                rank = ((1 + u * ((n + 1) ** (1 - zipf) - 1)) ** (1 / (1 - zipf))).long().sub_(1).clamp_(0, n - 1)
            step = max(1, int(n * 0.6180339887))
            while math.gcd(step, n) != 1:
                step += 1
            row = (rank * step + 7 * t) % n  # hot rows are no neighbours
            secret = torch.sin((row * (2 * t + 3) + t).double() * 12.9898).float()  # a weight of each row
            logit += secret.view(batch, h).sum(1) / math.sqrt(h) * 0.5
            ids.append(row)
        labels = (torch.rand(batch, generator=draw, device=device) < torch.sigmoid(logit - 1)).float()
        yield {"dense": dense, "labels": labels, "ids": torch.cat(ids), "offsets": offsets}


def write_batches(path, batches):
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, position = {}, 0
    for i, batch in enumerate(batches):
        for part, tensor in batch.items():
            size = tensor.numel() * tensor.element_size()
            header[f"batch.{i}.{part}"] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, position + size]}
            position += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for batch in batches:
            for tensor in batch.values():
                file.write(tensor.cpu().numpy().tobytes())


class Initial:
    """The dense parameters that portolan starts from, so that both train one network (number_formats.h, network.cc)."""

    def __init__(self, seed):
        self.seed, self.next = seed ^ (1 << 60), 0

    def normal(self, shape, deviation):
        mask = (1 << 64) - 1
        key = (self.seed + (self.next + 1) * 0x9E3779B97F4A7C15) & mask
        key = ((key ^ (key >> 33)) * 0xFF51AFD7ED558CCD) & mask
        key = ((key ^ (key >> 33)) * 0xC4CEB9FE1A85EC53) & mask
        self.next += 1

        def uniform(index):
            x = np.uint32(key >> 32) + (index.astype(np.uint32) + np.uint32(1)) * np.uint32(0x9E3779B9)
            x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
            x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
            return (((x ^ (x >> np.uint32(16))) >> np.uint32(8)).astype(np.float64) + 0.5) / 16777216

        with np.errstate(over="ignore"):
            i = np.arange(math.prod(shape), dtype=np.uint64) * np.uint64(2)
            values = np.sqrt(-2 * np.log(uniform(i))) * np.cos(2 * np.pi * uniform(i + np.uint64(1)))
        return torch.from_numpy((deviation * values).astype(np.float32)).view(shape)


class Dcn(nn.Module):
    def __init__(self):
        super().__init__()
        initial = Initial(1)

        def mlp(width, widths):
            layers = []
            for out in widths:
                layers.append(nn.Linear(width, out))
                layers[-1].weight.data = initial.normal((out, width), math.sqrt(2 / (width + out)))
                layers[-1].bias.data = initial.normal((out,), math.sqrt(1 / out))
                width = out
            return nn.ModuleList(layers)

        width = DIM * (len(LOOKUPS) + 1)
        std = math.sqrt(2 / (width + RANK))
        self.bottom = mlp(DENSE, BOTTOM)
        self.v, self.u, self.b = nn.ParameterList(), nn.ParameterList(), nn.ParameterList()
        for _ in range(CROSS):
            self.v.append(nn.Parameter(initial.normal((RANK, width), std)))
            self.u.append(nn.Parameter(initial.normal((width, RANK), std)))
            self.b.append(nn.Parameter(torch.zeros(width)))
            initial.next += 1
        self.top = mlp(width, TOP)

    def forward(self, dense, pooled):  # pooled [tables, batch, dim]
        h = dense
        for layer in self.bottom:
            h = F.relu(layer(h))
        x0 = x = torch.cat([h, pooled.to(h.dtype).transpose(0, 1).flatten(1)], dim=1)
        for v, u, b in zip(self.v, self.u, self.b):
            x = x0 * F.linear(F.linear(x, v), u, b) + x
        for i, layer in enumerate(self.top):
            x = layer(x)
            x = F.relu(x) if i + 1 < len(self.top) else x
        return x.squeeze(1)


def used_bytes():
    free, total = torch.cuda.mem_get_info()
    return total - free


def run_torch(case, args):
    """In a process of its own: prints one JSON line for each round that stdin asks for."""
    precision, compiled, optimizer = TORCH[case]
    device = "cuda"
    torch.manual_seed(3)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    before = used_bytes()
    rows = [min(r, args.rows) for r in ROWS]
    batches = list(make_batches(rows, args.batch, args.batches, device))
    first = torch.tensor([0] + rows[:-1], device=device).cumsum(0)
    per_table = torch.tensor([h * args.batch for h in LOOKUPS], device=device)
    for batch in batches:
        batch["ids"] += first.repeat_interleave(per_table)
    held = used_bytes()  # the batches, which ours holds too
    bag = nn.EmbeddingBag(sum(rows), DIM, mode="sum", sparse=True, include_last_offset=True, device=device)
    with torch.no_grad():
        at = 0
        for n in rows:
            bag.weight[at : at + n].uniform_(-1 / math.sqrt(n), 1 / math.sqrt(n))
            at += n
    model = Dcn().to(device)
    forward = torch.compile(model) if compiled else model
    dense_step = torch.optim.Adagrad(model.parameters(), RATE, eps=1e-8, foreach=True)
    table_step = (torch.optim.SGD if optimizer == "sgd" else torch.optim.Adagrad)(bag.parameters(), ROW_RATE, **({} if optimizer == "sgd" else {"eps": 1e-8}))

    def step(batch):
        dense_step.zero_grad(set_to_none=True)
        table_step.zero_grad(set_to_none=True)
        pooled = bag(batch["ids"], batch["offsets"]).view(len(rows), args.batch, DIM)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            logits = forward(batch["dense"], pooled)
        loss = F.binary_cross_entropy_with_logits(logits.float(), batch["labels"])
        loss.backward()
        dense_step.step()
        table_step.step()
        return loss.detach()

    losses, position = [], 0
    for line in sys.stdin:
        steps = int(line)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        got = []
        for _ in range(steps):
            got.append(step(batches[position % len(batches)]))
            position += 1
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        losses += [x.item() for x in got]
        print(json.dumps({"seconds": seconds, "losses": losses, "bytes": used_bytes() - before, "batch_bytes": held - before}), flush=True)


def job_text(folder, args, gemm, optimizer, steps, most_rows=None, data=None, cache="lfu"):
    most_rows = most_rows or args.rows
    tables = "".join(f"\n    - {{name: t{i}, rows: {min(r, most_rows)}, dim: {DIM}, lookups: {h}}}" for i, (r, h) in enumerate(zip(ROWS, LOOKUPS)))
    return f"""
model:
  model: dcnv2_capped
  dense_features: {DENSE}
  zipf_exponent: {ZIPF}
  tables:{tables}
  blocks:
    - {{name: bottom, type: mlp, input: dense, widths: {BOTTOM}}}
    - {{name: features, type: concat, inputs: [bottom, embeddings]}}
    - {{name: cross, type: low_rank_cross, input: features, layers: {CROSS}, rank: {RANK}}}
    - {{name: top, type: mlp, input: cross, widths: {TOP}, last_activation: none}}
recipe: {{recipe: r, local_batch: {args.batch}, precision: {{gemm: {gemm}, activation: {'bf16' if gemm == 'bf16' else 'fp32'}}}, embedding: {{optimizer: {optimizer}, host_cache: {cache}}}, execution: {{dense_optimizer: adagrad}}}}
data: {data or f"{{type: batches, file: {folder}/batches}}"}
device: cuda
learning_rate: {{rate: {RATE}, embedding: {ROW_RATE}}}
report_every: {args.steps}
steps: {steps}
eval: {{samples: 0}}
"""


def run_ours(case, args, folder, steps):
    """One run: the first pass over the batches (its losses say how good), and rounds of --steps steps, each timed."""
    gemm, optimizer = OURS[case]
    job = folder / f"{case}.yaml"
    job.write_text(job_text(folder, args, gemm, optimizer, steps))
    before, most, out, log = used_bytes(), 0, folder / "ours.json", folder / "ours.log"
    with open(log, "w") as stdout:
        process = subprocess.Popen([args.binary, "train", str(job), "--json", str(out)], stdout=stdout, stderr=subprocess.STDOUT)
        while process.poll() is None:
            most = max(most, used_bytes() - before)
            time.sleep(0.02)
    lines = log.read_text().splitlines()
    if process.returncode != 0:
        sys.exit(f"{case} failed:\n" + "\n".join(lines))
    rates = [float(line.split(" ms")[0].split()[-1]) for line in lines if line.startswith("step")]
    return {"step_ms": rates, "losses": json.loads(out.read_text())["losses"], "bytes": most, "log": lines[:4]}


def host_cache(args, folder):
    """A model of --cache-rows whose tables fit, and with less memory than it needs: data without end, so that no batch comes
    twice. Rates are medians over the second half of the reports."""
    rows = [min(r, args.cache_rows) for r in ROWS]
    result = {"rows": sum(rows), "table_bytes": sum(rows) * DIM * 8, "device_memory": args.device_memory, "steps": args.cache_steps}
    cases = {"fits": ("lfu", []), "lfu": ("lfu", ["--device-memory", args.device_memory]), "lru": ("lru", ["--device-memory", args.device_memory])}
    for name, (policy, options) in cases.items():
        job, out, before, most, begin = folder / "cache.yaml", folder / "cache.json", used_bytes(), 0, time.monotonic()
        job.write_text(job_text(folder, args, "bf16", "adagrad", args.cache_steps, args.cache_rows, "{type: synthetic}", policy))
        with open(folder / "cache.log", "w") as log:
            process = subprocess.Popen([args.binary, "train", str(job), "--json", str(out), *options], stdout=log, stderr=subprocess.STDOUT)
            while process.poll() is None:
                most = max(most, used_bytes() - before)
                time.sleep(0.02)
        lines = (folder / "cache.log").read_text().splitlines()
        if process.returncode != 0:
            print(f"{name} failed:\n" + "\n".join(lines))
            continue
        times = [float(line.split(" ms")[0].split()[-1]) for line in lines if line.startswith("step")]
        document = json.loads(out.read_text())
        result[name] = {"step_ms": times, "samples_per_s": args.batch / statistics.median(times[len(times) // 2 :]) * 1e3, "bytes": most,
                        "seconds": time.monotonic() - begin, "last_loss": statistics.mean(document["losses"][-args.steps :]),
                        "host_cache": document["host_cache"], "log": [x for x in lines if not x.startswith("step")]}
        print(name, json.dumps(result[name]), flush=True)
    for name in ("lfu", "lru"):
        if name in result and "fits" in result:
            result[name]["share_of_speed"] = result[name]["samples_per_s"] / result["fits"]["samples_per_s"]
            print(f"host cache {name}: {100 * result[name]['share_of_speed']:.1f} % of the speed that it has when it fits")
    return result


def copy_rate():
    """Bytes read and written a second by a large copy on the device."""
    a = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    b, times = torch.empty_like(a), []
    for _ in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        b.copy_(a)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * a.numel() * 4 / statistics.median(times)


def profile(args, folder, rows, zipf):
    """The operations of a step one by one, and what of copy bandwidth the embeddings reach by the bytes they must move:
    every distinct row (and, backward, its state) once, ids or sorted keys, pooled rows or their gradients."""
    batches = list(make_batches(rows, args.batch, 3, "cuda", zipf))
    write_batches(folder / "batches", batches)
    unique = sum(torch.unique(x).numel() for x in batches[0]["ids"].split([h * args.batch for h in LOOKUPS]))
    del batches
    rate = copy_rate()
    torch.cuda.empty_cache()
    job = folder / "profile.yaml"
    job.write_text(job_text(folder, args, "bf16", args.profile_optimizer, 6))
    text = subprocess.run([args.binary, "train", str(job), "--profile"], stdout=subprocess.PIPE, text=True, check=True).stdout
    table = text[text.index("operation, one at a time") :]
    operations = {name.strip(): {"calls": float(calls), "ms": float(ms)} for name, calls, ms in re.findall(r"^(.{28}) +(\d+) +(\d+\.\d+)", table, re.M)}
    print(table, flush=True)
    lookups, pooled = sum(LOOKUPS) * args.batch, len(LOOKUPS) * args.batch * DIM * 2
    forward = unique * DIM * 4 + lookups * 8 + len(LOOKUPS) * args.batch * 8 + pooled
    backward = unique * DIM * 4 * (4 if args.profile_optimizer == "adagrad" else 2) + lookups * 8 + pooled
    # By every lookup read from memory, as where nothing is found in the cache.
    uncached = forward + (lookups - unique) * DIM * 4
    shares = {name: bytes_ / (operations[name]["ms"] * 1e-3) / rate for name, bytes_ in (("embedding forward", forward), ("embedding backward", backward))}
    shares["embedding forward, every lookup"] = uncached / (operations["embedding forward"]["ms"] * 1e-3) / rate
    return {"zipf": zipf, "rows": sum(rows), "batch": args.batch, "optimizer": args.profile_optimizer, "distinct_rows": unique, "copy_bytes_per_s": rate, "share_of_copy_bandwidth": shares, "operations": operations, "summary": table.splitlines()[-2:]}


def card():
    fields = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,temperature.gpu"
    text = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True).stdout
    return dict(zip(fields.split(","), (x.strip() for x in text.split(","))))


def compare(case, ours, args, folder, result, deadline):
    """One case of PyTorch (empty: none) and those of ours, in turns; adds to `result`."""
    last = slice(args.batches * 2 // 3, args.batches)
    worker, seconds, answer, runs = None, [], {}, {o: [] for o in ours}
    if case:
        worker = subprocess.Popen([sys.executable, __file__, args.binary, "--worker", case, "--rows", str(args.rows), "--batch",
                                   str(args.batch), "--batches", str(args.batches)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        watch = threading.Timer(max(0, deadline - time.monotonic()), worker.kill)
        watch.start()

    def ask(steps):
        worker.stdin.write(f"{steps}\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline() or "{}")

    try:
        if worker:
            begin = time.monotonic()
            ask(args.batches)  # compiles, and is the pass whose losses are compared
            print(f"{case}: first pass after {time.monotonic() - begin:.1f} s", flush=True)
        for _ in range(args.rounds):
            if worker:
                answer = ask(args.steps) or answer
                seconds.append(answer["seconds"])
            for o in ours:
                runs[o].append(run_ours(o, args, folder, 3 * args.steps))
    except (BrokenPipeError, KeyError):
        print(f"{case}: stopped after {args.seconds} s", flush=True)
    if worker:
        watch.cancel()
        worker.stdin.close()
        worker.wait()
    if seconds:
        assert all(map(math.isfinite, answer["losses"])), "PyTorch's loss is not finite"
        result["pytorch"][case] = {"samples_per_s": args.batch * args.steps / statistics.median(seconds), "rounds_s": seconds,
                                   "bytes": answer["bytes"] - answer["batch_bytes"], "bytes_with_batches": answer["bytes"],
                                   "first_losses": answer["losses"][:3], "first_pass_loss": statistics.mean(answer["losses"][last])}
        print(case, json.dumps(result["pytorch"][case]), flush=True)
    for o in filter(runs.get, ours):
        # The first report holds warming up and the comparison of kernels.
        times = [ms for r in runs[o] for ms in r["step_ms"][1:]]
        losses = runs[o][0]["losses"]
        assert all(map(math.isfinite, losses)), f"{o}: the loss is not finite"
        result["ours"][o] = {"samples_per_s": args.batch / statistics.median(times) * 1e3, "step_ms": times,
                             "bytes_with_batches": max(r["bytes"] for r in runs[o]), "first_losses": losses[:3],
                             "first_pass_loss": statistics.mean(losses[last]), "log": runs[o][0]["log"]}
        if seconds:
            difference = result["ours"][o]["first_pass_loss"] / result["pytorch"][case]["first_pass_loss"] - 1
            result["quality"][o] = {"against": case, "relative_loss_difference": difference, "equal": abs(difference) <= args.quality}
        print(o, json.dumps(result["ours"][o]), result["quality"].get(o), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--out", default="train.json")
    parser.add_argument("--rows", type=int, default=4000000)
    parser.add_argument("--batch", type=int, default=65536)
    parser.add_argument("--batches", type=int, default=32)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quality", type=float, default=0.01)
    parser.add_argument("--torch", default=",".join(TORCH), help="cases of PyTorch, with commas; empty: ours alone")
    parser.add_argument("--ours", default=",".join(OURS))
    parser.add_argument("--profiles", default=f"{ZIPF},0", help="Zipf exponents whose steps are profiled")
    parser.add_argument("--profile-optimizer", default="adagrad", choices=("adagrad", "sgd"))
    parser.add_argument("--device-memory", help="measure tables in host memory too, with so much memory of the device")
    parser.add_argument("--cache-rows", type=int, default=9229000, help="cap of tables there: 48 GiB of rows and state")
    parser.add_argument("--cache-steps", type=int, default=192)
    parser.add_argument("--folder", help="for the batches, 0.13 GB each; a temporary one unless given")
    parser.add_argument("--seconds", type=float, default=3600, help="after which no case is begun and PyTorch is stopped")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return run_torch(args.worker, args)
    deadline = time.monotonic() + args.seconds
    torch.cuda.init()
    rows = [min(r, args.rows) for r in ROWS]
    result = {"date": datetime.date.today().isoformat(), "command": " ".join(sys.argv), "card": card(), "torch": torch.__version__,
              "model": {"rows": sum(rows), "lookups": sum(LOOKUPS), "dim": DIM, "zipf": ZIPF, "batch": args.batch, "rate": RATE, "row_rate": ROW_RATE},
              "ours": {}, "pytorch": {}, "quality": {}, "profiles": []}
    ours = [o for o in args.ours.split(",") if o]

    def keep():
        result["card_after"] = card()
        Path(args.out).write_text(json.dumps(result, indent=1) + "\n")

    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        folder = Path(temporary)
        write_batches(folder / "batches", list(make_batches(rows, args.batch, args.batches, "cuda")))
        torch.cuda.empty_cache()
        for case in args.torch.split(","):
            if time.monotonic() < deadline:
                compare(case, [o for o in ours if not case or QUALITY[o] == case], args, folder, result, deadline)
                keep()
        for zipf in filter(None, args.profiles.split(",")):
            if time.monotonic() < deadline:
                result["profiles"].append(profile(args, folder, rows, float(zipf)))
                keep()
        if args.device_memory:
            (folder / "batches").unlink(missing_ok=True)
            result["host_cache"] = host_cache(args, folder)
            keep()
    for name, group in (("portolan", "ours"), ("PyTorch", "pytorch")):
        for case, r in result[group].items():
            print(f"{name:<9} {case:<22} {r['samples_per_s'] / 1e6:6.3f} M samples/s  {r['bytes_with_batches'] / 1e9:6.1f} GB  loss {r['first_pass_loss']:.5f}")
    for p in result["profiles"]:
        print(f"zipf {p['zipf']}: distinct rows {p['distinct_rows']}, share of copy bandwidth", p["share_of_copy_bandwidth"])
    bad = [o for o, q in result["quality"].items() if not q["equal"]]
    if bad:
        sys.exit(f"not of equal quality: {', '.join(bad)}")


if __name__ == "__main__":
    main()
