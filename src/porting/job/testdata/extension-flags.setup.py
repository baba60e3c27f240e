from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(
    name="ops",
    ext_modules=[CUDAExtension("ops", ["ops.cpp", "k.cu"],
        libraries=["cublas", "z"],  #! error extension-flags #-> libraries=["hipblas", "z"],
        extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3", "--use_fast_math"]},  #! error extension-flags #-> extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3", "-ffast-math"]},
        extra_link_args=["-lz"])],
    flags=["--expt-relaxed-constexpr", "-DX=1"],  #! error extension-flags #-> flags=["-DX=1"],
    arch=["-gencode", "-O2"],  #! error extension-flags
    cmdclass={"build_ext": BuildExtension},
    description="needs nvcc --use_fast_math",
)
