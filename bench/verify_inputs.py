"""Inputs and arguments for HeCBench programs whose own inputs are no part of its checkout (it keeps them elsewhere).

Each input is small, made from a seed, and of the format that the program's reader expects; each command is what the
program's usage text asks for at a small size. A program in COMMANDS is one whose Makefile's sizes cannot be divided
blindly: sizes that must be multiples of something, or that its code takes for granted. What was run is in each report.
"""
import os
import random
import struct


def edges(path, nodes, count, rng):
    """An undirected graph, two node numbers a line (lanczos)."""
    with open(path, "w") as out:
        for _ in range(count):
            a, b = rng.randrange(nodes), rng.randrange(nodes)
            if a != b:
                out.write(f"{a} {b}\n{b} {a}\n")


def libsvm(path, rows, features, rng):
    """Labels and numbered features (kmc: LIBSVM's format)."""
    with open(path, "w") as out:
        for _ in range(rows):
            label = rng.choice([-1, 1])
            picked = sorted(rng.sample(range(1, features + 1), features // 2))
            out.write(f"{label:+d} " + " ".join(f"{i}:{rng.uniform(-1, 1) + 0.3 * label:.4f}" for i in picked) + "\n")


def matrix_market(path, size, count, rng):
    """A sparse pattern, coordinates from 1 (ge-spmm and others)."""
    entries = sorted({(rng.randrange(1, size + 1), rng.randrange(1, size + 1)) for _ in range(count)})
    with open(path, "w") as out:
        out.write("%%MatrixMarket matrix coordinate pattern general\n")
        out.write(f"{size} {size} {len(entries)}\n")
        out.writelines(f"{row} {column}\n" for row, column in entries)


def bigrams(path, rng):
    """A score for each pair of letters (columnarSolver)."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    with open(path, "w") as out:
        for a in letters:
            out.writelines(f"{a}{b} {rng.uniform(0, 10):.3f}\n" for b in letters)


def genome(path, length, rng):
    with open(path, "w") as out:
        out.write("".join(rng.choice("ACGT") for _ in range(length)))


def bitmap(path, width, height, rng):
    """24 bits a pixel, without compression (sobel)."""
    pixels = bytes(rng.randrange(256) for _ in range(width * height * 3))
    with open(path, "wb") as out:
        out.write(struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54))
        out.write(struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0))
        out.write(pixels)


def matrices(path, count, rng):
    """How many, then nine numbers each (svd3x3)."""
    with open(path, "w") as out:
        out.write(f"{count}\n")
        for _ in range(count):
            out.write(" ".join(f"{rng.uniform(-1, 1):.6f}" for _ in range(9)) + "\n")


def expressions(path, genes, conditions, rng):
    """A table with a heading, columns between tabs (ccs)."""
    with open(path, "w") as out:
        out.write("\t".join(["ID"] + [f"c{j}" for j in range(conditions)]) + "\n")
        for i in range(genes):
            out.write("\t".join([f"g{i}"] + [f"{rng.uniform(0, 10):.4f}" for _ in range(conditions)]) + "\n")


def egr(path, nodes, degree, rng):
    """A graph of the ECL programs: two counts, the rows' begins, neighbours both ways, weights, all 32-bit."""
    rows = [set() for _ in range(nodes)]
    for a in range(nodes):
        for b in (rng.randrange(nodes) for _ in range(rng.randrange(2 * degree))):
            if a != b:
                rows[a].add(b)
                rows[b].add(a)
    neighbours = [b for row in rows for b in sorted(row)]
    begins = [0]
    for row in rows:
        begins.append(begins[-1] + len(row))
    weights = [rng.randrange(1, 100) for _ in neighbours]
    with open(path, "wb") as out:
        for values in ([nodes, len(neighbours)], begins, neighbours, weights):
            out.write(struct.pack(f"<{len(values)}i", *values))


def stars(path, count, leaves):
    """The same format: stars whose centres have the highest number, so that nothing but the centre links its leaves (cc)."""
    rows = []
    for k in range(count):
        first = len(rows)
        rows += [[first + leaves] for _ in range(leaves)]
        rows.append(list(range(first, first + leaves)))
    neighbours = [b for row in rows for b in row]
    begins = [0]
    for row in rows:
        begins.append(begins[-1] + len(row))
    with open(path, "wb") as out:
        for values in ([len(rows), len(neighbours)], begins, neighbours, [1] * len(neighbours)):
            out.write(struct.pack(f"<{len(values)}i", *values))


def nets(path, count, rng):
    """A routing problem of the ISPD contests: a grid of two layers, then each net and its pins (rsmt)."""
    with open(path, "w") as out:
        out.write("grid 64 64 2\nvertical capacity 0 8\nhorizontal capacity 8 0\nminimum width 1 1\n")
        out.write(f"minimum spacing 0 0\nvia spacing 0 0\n0 0 10 10\n\nnum net {count}\n")
        for i in range(count):
            pins = rng.randint(2, 9)
            out.write(f"n{i} {i} {pins} 1\n")
            out.writelines(f"{rng.randrange(640)} {rng.randrange(640)} {1 + j % 2}\n" for j in range(pins))


def boolean_product(path, height, width, rng):
    """A Boolean matrix of rank 20 at most: its sizes, then where it is 1 (bmf)."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    a = [rng.getrandbits(20) & rng.getrandbits(20) & rng.getrandbits(20) for _ in range(height)]
    b = [rng.getrandbits(20) & rng.getrandbits(20) & rng.getrandbits(20) for _ in range(width)]
    ones = [(i, j) for i in range(height) for j in range(width) if a[i] & b[j]]
    with open(path, "w") as out:
        out.write(f"{height} {width} {len(ones)}\n")
        out.writelines(f"{i} {j}\n" for i, j in ones)


def signed_edges(path, nodes, count, rng):
    """A heading, then from,to,sign (graphB+)."""
    with open(path, "w") as out:
        out.write("from,to,sign\n")
        for i in range(1, nodes):
            out.write(f"{i - 1},{i},1\n")
        for _ in range(count):
            out.write(f"{rng.randrange(nodes)},{rng.randrange(nodes)},{rng.choice([-1, 1])}\n")


def doubles(path, count, rng):
    """A slow curve (mpc compresses it)."""
    with open(path, "wb") as out:
        out.write(struct.pack(f"<{count}d", *(1000 + i * 0.5 + rng.random() for i in range(count))))


def proteins(folder, pairs, rng):
    """Two FASTA files, a line a sequence (bsw)."""
    os.makedirs(folder, exist_ok=True)
    for name, low in (("reference", 100), ("query", 60)):
        with open(f"{folder}/protein-{name}.fasta", "w") as out:
            for i in range(pairs):
                length = rng.randrange(low, 2 * low)
                out.write(f">{name}{i}\n" + "".join(rng.choice("ACDEFGHIKLMNPQRSTVWY") for _ in range(length)) + "\n")


# Program: what writes its inputs, below the folder that holds all programs.
INPUTS = {
    "lanczos": lambda d, r: edges(d + "/lanczos-cuda/data/social-large-800k.txt", 128, 400, r),
    "kmc": lambda d, r: libsvm(d + "/kmc-cuda/gisette_scale", 40, 16, r),
    "ge-spmm": lambda d, r: matrix_market(d + "/ge-spmm-cuda/data/snap/amazon0302/amazon0302.mtx", 300, 2000, r),
    "columnarSolver": lambda d, r: bigrams(d + "/columnarSolver-cuda/data", r),
    "sa": lambda d, r: genome(d + "/sa-cuda/genome.txt", 4096, r),
    "cc": lambda d, r: (egr(d + "/cc-cuda/delaunay_n24.egr", 300, 8, r), stars(d + "/cc-cuda/stars.egr", 40, 20)),
    "rsmt": lambda d, r: nets(d + "/rsmt-cuda/nets.gr", 60, r),
    "bmf": lambda d, r: boolean_product(d + "/bmf-cuda/data/m.in", 96, 128, r),
    "floydwarshall2": lambda d, r: egr(d + "/floydwarshall2-cuda/CollegeMsg.egr", 96, 6, r),
    "graphB+": lambda d, r: signed_edges(d + "/graphB+-cuda/graph.csv", 200, 1500, r),
    "mpc": lambda d, r: doubles(d + "/mpc-cuda/msg_sp.trace.out", 16384, r),
    "bsw": lambda d, r: proteins(d + "/bsw-cuda/test-data", 6, r),
    "svd3x3": lambda d, r: matrices(d + "/svd3x3-cuda/Dataset_1M.txt", 600, r),
    "ccs": lambda d, r: expressions(d + "/ccs-cuda/Data_Constant_100_1_bicluster.txt", 40, 20, r),
    "sobel": lambda d, r: bitmap(d + "/sobel-cuda/SobelFilter_Input.bmp", 64, 48, r),
}

# Program: the command, and other values of its constants.
COMMANDS = {
    "lanczos": ("./main -g data/social-large-800k.txt -n 128 -k 2 -d float", []),
    "kmc": ("./main -v 2 gisette_scale", []),
    "ge-spmm": ("./main data/snap/amazon0302/amazon0302.mtx 32 1", []),
    "columnarSolver": ("./main data", ["CLIMBINGS=20"]),
    "sa": ("./main genome.txt 2048 1", []),
    "sobel": ("./main SobelFilter_Input.bmp 1", []),
    "logan": ("./main inputs/example.txt 17 5 1", []),
    "multimaterial": ("./multimat_FL 64 64 0.3 0.05 0.05", []),
    "matern": ("./main 16 1", []),
    "dense-embedding": ("./main 800 16 1", []),
    "zmddft": ("./main 1", []),
    "scan2": ("./main 1 65536 256", []),
    "svd3x3": ("./main Dataset_1M.txt 1", []),
    "ccs": ("./main -t 0.9 -i Data_Constant_100_1_bicluster.txt -o ./Output.txt -m 4 -p 1 -g 100.0 -r 1", []),
    "hungarian": ("./main output.txt", ["n_tests=1", "user_n=100"]),
    "keccaktreehash": ("./main", ["IMAX=1", "NB_INPUT_BLOCK=64"]),
    "hadamard": ("./main 1 1", []),
    "cc": ("./main delaunay_n24.egr 1", []),
    "floydwarshall2": ("./main CollegeMsg.egr 1", []),
    "graphB+": ("./main graph.csv 2 output", []),
    "opticalFlow": ("./main data/frame10.ppm data/frame11.ppm", ["nSolverIters=2", "nWarpIters=1"]),
    "mpc": ("./main msg_sp.trace.out 1", []),
    "bsw": ("./main ./test-data/protein-reference.fasta ./test-data/protein-query.fasta out", []),
    "shuffle": ("./main 1 1", ["total=4096"]),
    "vote": ("./main 1", []),
    "btree": ("./main 2048 2048", []),
    "atomicAggregate": ("./main 1", ["nBlocks=64"]),
    "gc": ("./main ../mis-cuda/internet.egr 1", []),
    "fpdc": ("./main 7 4 1 2", ["MAX=65536"]),
    "fresnel": ("./main 1", ["interval=1e-3"]),
    "rsmt": ("./main nets.gr", []),
    "bmf": ("./main data/m.in -r 1 -l 32 -i 4 --seed 123", []),
    "scatterAdd": ("./main 32 32 8 1", []),
    "tensorT": ("./main 1", ["d5=6", "d6=5"]),
}


def write_inputs(name, corpus, root, seed):
    """Copies the program's folder below `root`, its neighbours as links, and writes its inputs. Returns the folder."""
    import shutil

    os.makedirs(root, exist_ok=True)
    for entry in os.listdir(corpus):
        if not os.path.lexists(os.path.join(root, entry)):
            os.symlink(os.path.join(os.path.abspath(corpus), entry), os.path.join(root, entry))
    folder = os.path.join(root, name + "-cuda")
    if os.path.islink(folder):
        os.unlink(folder)
        shutil.copytree(os.path.join(corpus, name + "-cuda"), folder)
    for known in ("data", "data/snap/amazon0302"):
        if name in ("lanczos", "ge-spmm"):
            os.makedirs(os.path.join(folder, known), exist_ok=True)
    INPUTS[name](root, random.Random(seed))
    return folder
