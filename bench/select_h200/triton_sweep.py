"""Times a plain Triton matmul over tiles x split-K for fresh random shapes, in the columns that `portolan select --batch`
and tools/calibrate_gemm read.

  python3 triton_sweep.py SEED SECONDS OUT.csv
  python3 triton_sweep.py compile PART PARTS      fills Triton's cache first, in several processes

bf16, fp32 accumulation, programs in groups of 8 rows of tiles; split-K adds with fp32 atomics into a cleared fp32
buffer (clearing and conversion are not timed: readers charge them). Times are medians of three graph replays over
rotating buffers that exceed the L2. The same seed gives the same shapes; stops after SECONDS of measuring.
"""
import csv
import math
import random
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

COLD_BYTES = 60e6
GROUP_M = 8


@triton.jit(do_not_specialize=["split"])
def matmul(a, b, d, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, split, ATOMIC: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    part = tl.program_id(1)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    tall = min(rows - first, GROUP)
    pid_m = first + (pid % (GROUP * columns)) % tall
    pid_n = (pid % (GROUP * columns)) // tall
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = part * BK + tl.arange(0, BK)
    pa = a + rm[:, None] * stride_am + rk[None, :] * stride_ak
    pb = b + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * split)):
        left = K - k * BK * split
        x = tl.load(pa, mask=rk[None, :] < left, other=0.0)
        y = tl.load(pb, mask=rk[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK * split * stride_ak
        pb += BK * split * stride_bk
    om = pid_m * BM + tl.arange(0, BM)
    on = pid_n * BN + tl.arange(0, BN)
    out = d + om[:, None] * N + on[None, :]
    mask = (om[:, None] < M) & (on[None, :] < N)
    if ATOMIC:
        tl.atomic_add(out, acc, mask=mask, sem="relaxed")
    else:
        tl.store(out, acc.to(tl.bfloat16), mask=mask)


def tiles():
    """The 120 configurations of data/kernels/triton_sm_90_bf16.csv."""
    kept = []
    for bm in (16, 64, 128, 256):
        for bn in (32, 64, 128, 256):
            for bk, stages in ((32, 4), (64, 2), (64, 3), (64, 4), (128, 2), (128, 3)):
                for warps in (4, 8):
                    fits = (bm + bn) * bk * 2 * stages <= 227 * 1024 and bm * bn <= 255 * warps * 32
                    if fits and not (warps == 8 and bm * bn < 64 * 128):
                        kept.append((bm, bn, bk, warps, stages))
    return kept


def draw(rng):
    widths = (96, 128, 256, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 3456, 4096, 5120)
    batches = (512, 1024, 2048, 4096, 6912, 8192, 16384, 32768, 65536)
    while True:
        layout = rng.choice(("TN", "NN", "NT"))
        if rng.random() < 0.7:
            rows, out, depth = rng.choice(batches), rng.choice(widths), rng.choice(widths)
            m, n, k = (rows, out, depth) if layout != "NT" else (depth, out, rows)
        else:
            m, n, k = (16 * max(1, round(math.exp(rng.uniform(math.log(4), math.log(top))))) for top in (2048, 400, 800))
        if 2.0 * m * n * k < 3e11 and 2 * (m * k + k * n + m * n) < 1e9:
            return layout, m, n, k


def make(layout, m, n, k):
    a = torch.randn((k, m) if layout == "NT" else (m, k), device="cuda", dtype=torch.bfloat16)
    b = torch.randn((n, k) if layout == "TN" else (k, n), device="cuda", dtype=torch.bfloat16)
    return (a.t() if layout == "NT" else a), (b.t() if layout == "TN" else b)


def launch(a, b, d, config, split):
    bm, bn, bk, warps, stages = config
    m, k = a.shape
    n = b.shape[1]
    matmul[(triton.cdiv(m, bm) * triton.cdiv(n, bn), split)](a, b, d, m, n, k, a.stride(0), a.stride(1), b.stride(0),
                                                            b.stride(1), bm, bn, bk, split, split > 1, GROUP_M, num_warps=warps,
                                                            num_stages=stages)


def time_us(call, sets, launches):
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            call(i % sets)
    times = []
    for replay in range(4):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if replay:
            times.append(begin.elapsed_time(end) * 1000 / launches)
    return min(times), statistics.median(times)


def splits(m, n, k, config):
    bm, bn, bk = config[:3]
    count = triton.cdiv(m, bm) * triton.cdiv(n, bn)
    for split in (1, 2, 4, 8, 16, 32):
        if split == 1 or (count < 132 and count * split <= 1056 and k / bk >= 2 * split):
            yield split


def compile_part(part, parts):
    jobs = [(layout, config, atomic) for layout in ("TN", "NN", "NT") for config in tiles() for atomic in (False, True)]
    for layout, (bm, bn, bk, warps, stages), atomic in jobs[part::parts]:
        wide = 1024
        strides = ((1, wide) if layout == "NT" else (wide, 1)) + ((1, wide) if layout == "TN" else (wide, 1))
        try:
            matmul.warmup(torch.bfloat16, torch.bfloat16, torch.float32 if atomic else torch.bfloat16, wide, wide, wide,
                          *strides, bm, bn, bk, 2 if atomic else 1, atomic, GROUP_M, num_warps=warps,
                          num_stages=stages, grid=(1, 1))
        except Exception as error:
            print("not compiled:", layout, bm, bn, bk, warps, stages, error, flush=True)


def main():
    if sys.argv[1] == "compile":
        compile_part(int(sys.argv[2]), int(sys.argv[3]))
        return
    seed, seconds, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    rng = random.Random(seed)
    configs = tiles()
    broken = set()
    problems = 0
    began = time.time()
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow("dtype layout M N K batch BM BN BK warps stages splitk us_min us_med".split())
        while time.time() - began < seconds:
            layout, m, n, k = draw(rng)
            size = 2 * (m * k + k * n) + 4 * m * n
            launches = int(min(16, max(4, COLD_BYTES // size + 1)))
            buffers = [make(layout, m, n, k) for _ in range(launches)]
            narrow = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(launches)]
            wide = [torch.zeros(m, n, device="cuda") for _ in range(launches)] if m * n < 4e6 else None
            for config in configs:
                bm, bn = config[:2]
                count = triton.cdiv(m, bm) * triton.cdiv(n, bn)
                if (layout, config) in broken or bm >= 4 * m or bn >= 4 * n or (bm * bn <= 4096 and count > 8448):
                    continue
                for split in splits(m, n, k, config):
                    if split > 8 or (split > 1 and wide is None):
                        continue
                    target = narrow if split == 1 else wide
                    try:
                        launch(*buffers[0], target[0], config, split)
                    except Exception as error:  # a configuration that this compiler refuses is left out, and named
                        print("left out:", layout, config, error, flush=True)
                        broken.add((layout, config))
                        break
                    least, middle = time_us(lambda i: launch(*buffers[i], target[i], config, split), launches, launches)
                    out.writerow(["bf16", layout, m, n, k, 1, *config, split, f"{least:.3f}", f"{middle:.3f}"])
            problems += 1
    print(f"triton: {problems} problems of seed {seed}, triton {triton.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
