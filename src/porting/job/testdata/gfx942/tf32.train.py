torch.backends.cuda.matmul.allow_tf32 = True  #! note tf32
torch.set_float32_matmul_precision("highest")
