#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1  #! note job-environment
CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun train.py  #! warning job-environment
export NCCL_TOPO_FILE=/etc/topo.xml  #! warning job-environment
echo "$CUDA_HOME/bin"
# export CUDA_HOME=/usr/local/cuda
export NCCL_SOCKET_IFNAME=eth0
export NCCL_IB_HCA=mlx5
export MY_CUDA_HOME=/x
export TORCH_NCCL_BLOCKING_WAIT=1
