import torch
torch.backends.cuda.matmul.allow_tf32 = True  #! warning tf32
torch.backends.cudnn.allow_tf32=True  #! warning tf32
torch.set_float32_matmul_precision('high')  #! warning tf32
torch.set_float32_matmul_precision("medium")  #! warning tf32
torch.backends.fp32_precision = "tf32"  #! warning tf32
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")
torch.set_float32_matmul_precision(args.precision)
if torch.backends.cuda.matmul.allow_tf32:
    print("allow_tf32 = True")
# torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.fp32_precision = "ieee"
y = tl.dot(a, b, allow_tf32=True)  #! note tf32
y = matmul(x_fp8, w_fp8, allow_tf32=True, fast=True)
y = gemm_bf16(x, w, allow_tf32=True)
y = tl.dot(a.to(tl.float16), f(b), allow_tf32=True)
y = g(f(x_fp8)) + tl.dot(a, b, allow_tf32=True)  #! note tf32
