x = x.to(torch.float8_e4m3fn)  #! error torch-device
y = y.to(torch.float8_e4m3fnuz)
z = z.to(torch.bfloat16)
