"""Compiles the sources of one program's Makefile for an AMD chip, as bench/port_corpus asks."""

import os
import re
import shlex
import subprocess

CUDA_EXTENSIONS = (".cu", ".hip")
HOST_EXTENSIONS = (".cpp", ".cc", ".cxx", ".c", ".C")


def make_commands(folder):
    """What the Makefile would run, without running it; None when make itself fails."""
    try:
        done = subprocess.run(
            ["make", "-n", "-B", "-C", folder, "CC=nvcc"], capture_output=True, text=True, errors="replace", timeout=60
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return None
    return done.stdout.replace("\\\n", " ").splitlines()


def compilations(folder):
    """[(source, flags)] of the Makefile's compiler calls: -D, -I, -U, -std, -O and -fopenmp; None: cannot be judged."""
    lines = make_commands(folder)
    if lines is None:
        return None
    found = {}
    for line in lines:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        sources = [w for w in words if w.endswith(CUDA_EXTENSIONS + HOST_EXTENSIONS) and not w.startswith("-")]
        if not words or not sources:
            continue
        flags = []
        as_cuda = False
        skip = False
        for i, word in enumerate(words):
            if skip:
                skip = False
                continue
            if word in ("-D", "-I", "-U", "-isystem") and i + 1 < len(words):
                flags += [word, words[i + 1]]
                skip = True
            elif word == "-Xcompiler" and i + 1 < len(words):
                flags += [w for w in words[i + 1].split(",") if w == "-fopenmp" or w[:2] in ("-D", "-I")]
                skip = True
            elif word == "-x" and i + 1 < len(words):
                as_cuda = words[i + 1] in ("cu", "hip")
                skip = True
            elif word[:2] in ("-D", "-I", "-U", "-O") or word.startswith("-std=") or word == "-fopenmp":
                flags.append(word)
            elif word.startswith("--std="):
                flags.append(word[1:])
        for source in sources:
            if os.path.isfile(os.path.join(folder, source)) and source not in found:
                found[source] = (flags, as_cuda or source.endswith(CUDA_EXTENSIONS))
    return [(source, flags, as_cuda) for source, (flags, as_cuda) in found.items()] or None


RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)


def write_own_headers(repository, release, root):
    """The headers that `portolan port --compile` has for a machine without ROCm, as its sources hold them, in `root`."""
    porting = os.path.join(repository, "src", "porting")
    with open(os.path.join(porting, "toolchain.cc"), encoding="utf-8") as file:
        toolchain = file.read()

    def text_of(constant):
        included = re.search(constant + r' =\n#include "porting/(headers/[\w.]+)"', toolchain)
        with open(os.path.join(porting, included.group(1)), encoding="utf-8") as file:
            return "".join(found.group(2) for found in RAW_STRING.finditer(file.read()))

    def write(name, text):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    for name, constant in re.findall(r'\{"([\w/.]+\.h(?:pp)?)", (k\w+)\}', toolchain):
        write(os.path.join("include", name), text_of(constant))
    major, minor = release.split(".")
    write(
        os.path.join("include", "hip", "hip_version.h"),
        f"#pragma once\n#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n"
        f"#define HIP_VERSION_PATCH 0\n#define HIP_VERSION ({major} * 10000000 + {minor} * 100000)\n",
    )
    write(os.path.join("library", "prelude.h"), RAW_STRING.search(toolchain).group(2))
    write(os.path.join("library", "device_library.h"), text_of("kDeviceLibrary"))


def compile_source(folder, source, flags, as_cuda, options, shim, codegen):
    """The compiler's first error, or "" when there is none."""
    host = [options.clang] if not source.endswith(".c") or as_cuda else [options.clang.replace("++", "")]
    common = ["-isystem", os.path.join(options.headers, "include"), "-w", "-ferror-limit=5"]
    if shim:
        common = ["-I", shim] + common
    if not as_cuda:
        if source.endswith(".c"):
            flags = [f for f in flags if not f.startswith("-std=c++")]
        runs = [host + common + flags + ["-D__HIP_PLATFORM_AMD__=1", "-fsyntax-only", source]]
    else:
        base = [options.clang, "-x", "hip", f"--offload-arch={options.to}"]
        if options.own_headers:
            base += ["-nogpuinc", "-nogpulib", "-include", os.path.join(options.headers, "library", "prelude.h")]
            base += ["-include", "__clang_hip_runtime_wrapper.h"]
            base += ["-include", os.path.join(options.headers, "library", "device_library.h")]
        else:
            base.append(f"--rocm-path={options.headers}")
        base += shlex.split(options.compile_flags)
        if shim:
            base += ["-include", "portolan_shim.h"]
            overlay = os.path.join(shim, "overlay.yaml")
            if os.path.isfile(overlay):
                base += ["-ivfsoverlay", overlay]
        base += common + flags
        if not any(f.startswith("-std=") for f in flags):
            base.append("-std=c++17")  # nvcc's default; ROCm 6.3's hipCUB does not compile as gnu++17, clang's
        if codegen:
            runs = [
                base + ["--cuda-device-only", "--no-gpu-bundle-output", "-c", "-o", os.devnull, source],
                base + ["--cuda-host-only", "-fsyntax-only", source],
            ]
        else:
            runs = [base + ["-fsyntax-only", source]]
    for run in runs:
        try:
            done = subprocess.run(run, cwd=folder, capture_output=True, text=True, errors="replace", timeout=options.limit)
        except subprocess.TimeoutExpired:
            return f"{source}: not compiled in {options.limit} s"
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error:" in line]
            return "\n".join(errors[: options.errors] or done.stderr.splitlines()[:1] or [f"{source}: failed"])
    return ""


def compile_program(folder, options, shim, codegen):
    """(verdict, first error): "compiles", "fails" or "not judged"."""
    sources = compilations(folder)
    if sources is None:
        return "not judged", "its Makefile gives no compiler call on a source that is there"
    for source, flags, as_cuda in sources:
        error = compile_source(folder, source, flags, as_cuda, options, shim, codegen)
        if error:
            return "fails", error
    return "compiles", ""
