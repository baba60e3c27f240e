FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build  #! error container
FROM --platform=linux/amd64 nvcr.io/nvidia/pytorch:24.05-py3  #! error container
FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel  #! error container
FROM ubuntu:22.04
FROM rocm/pytorch:latest
FROM build
COPY --from=nvidia/cuda /x /y
# FROM nvidia/cuda
RUN echo from nvidia/cuda
