import torch
import pynvml  #! error torch-device
device = torch.device("cuda")
x = torch.ones(4, device="cuda")
torch.cuda.synchronize()
dist.init_process_group(backend="nccl")
if torch.version.cuda is not None:
if torch.version.hip:
print(torch.version.cuda)
def is_blackwell():
  if torch.version.hip:
    return False
  return torch.cuda.get_device_capability() >= (10, 0)
def cuda_major():
  if torch.version.cuda is not None:
    return int(torch.version.cuda.split(".")[0])
@unittest.skipIf(torch.version.hip or torch.cuda.get_device_capability() < (9, 0), "for Hopper")
def is_hopper():
if torch.cuda.get_device_capability()[0] >= 9:  #! warning torch-device
print(torch.cuda.get_device_capability())
subprocess.run(["nvidia-smi", "-L"])  #! warning torch-device
x = x.to(torch.float8_e4m3fn)
torch.cuda.is_bf16_supported()
torch.backends.cudnn.benchmark = True
major = int(torch.version.cuda.split(".")[0])  #! warning torch-device
tag = "cu" + torch.version.cuda  #! warning torch-device
assert torch.version.cuda >= "12.0"  #! warning torch-device
if torch.cuda.get_device_capability() >= (10, 0): pass
if torch.cuda.get_device_capability(0) >= (9, 0): pass  #! warning torch-device
if torch.cuda.get_device_capability() >= (8, 0): pass
if torch.cuda.get_device_capability()[0] < 8: pass
if torch.cuda.get_device_capability()[0] == 9: pass  #! warning torch-device
