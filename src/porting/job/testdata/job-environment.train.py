import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  #! warning job-environment
os.environ.setdefault('NCCL_NVLS_ENABLE', '0')  #! note job-environment
home = os.getenv("CUDA_HOME")  #! warning job-environment
env = {"TORCH_CUDA_ARCH_LIST": "9.0", "OMP_NUM_THREADS": "8"}  #! warning job-environment
print("CUDA_LAUNCH_BLOCKING")
message = "set CUDA_HOME first"
os.environ["NCCL_DEBUG"] = "INFO"
os.environ["MASTER_ADDR"] = "localhost"
names = ["CUDA_HOME"]
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:512"
