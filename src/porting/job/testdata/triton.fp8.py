import triton
configs = [triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}, num_stages=3, num_warps=4)]
configs = [triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 128}, num_stages=3, num_warps=4)]  #! note triton
configs = [triton.Config({"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 256}, num_stages=3, num_warps=4)]  #! warning triton
y = matmul_fp8(x, w)
