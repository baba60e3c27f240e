pip install torch==2.4.0+cu124 --index-url https://download.pytorch.org/whl/cu124  #! error wheel-pin; error wheel-pin
pip3 install numpy cupy-cuda11x && echo triton  #! error wheel-pin
pip install -r requirements.txt
echo "nvidia-cublas"
apt-get install nvidia-utils
pip install torch --index-url https://download.pytorch.org/whl/rocm6.3
