docker run --rm --gpus all image  #! error container
docker run --runtime=nvidia image  #! error container
singularity exec --nv image.sif train  #! error container
srun --gpus 8 train
sbatch --gpus-per-node=8 job
docker run --device=/dev/kfd image
