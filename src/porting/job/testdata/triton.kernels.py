import triton
import triton.language as tl
configs = [triton.Config({"BLOCK": 64}, num_warps=4, num_stages=2)]
configs = [triton.Config({"BLOCK": 64}, num_warps=8, num_stages=3)]  #! note triton; note triton
configs = [triton.Config({"BLOCK": 64}, num_warps=32, num_stages=5)]  #! error triton; warning triton
configs = [triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}, num_stages=4, num_warps=4)]
configs = [triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64}, num_stages=3, num_warps=4)]  #! note triton
configs = [triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 128}, num_stages=3, num_warps=4)]  #! warning triton
kernel[grid](x, num_ctas=2)  #! error triton
kernel[grid](x, num_ctas=1)
for i in tl.range(0, n, warp_specialize=True):  #! warning triton
for i in tl.range(0, n, num_stages=1):
d = tl._experimental_descriptor_load(p, [0], [64], tl.float16)  #! error triton
d = tl.make_tensor_descriptor(p, shape, strides, block)  #! note triton
y = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)  #! error triton
from triton.language.extra.cuda import libdevice  #! error triton
from triton.language.extra import libdevice
num_warps = 32
x = tl.load(p, mask=m)
y = tl.dot(a, b)
def kernel(x, num_warps: tl.constexpr):
run(num_warps=num_warps)
