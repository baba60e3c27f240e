thrust::sort(thrust::cuda::par.on(stream), a, b);  //! error thrust-policy //-> thrust::sort(thrust::hip::par.on(stream), a, b);
thrust::sort(thrust::device, a, b);
thrust::sort(thrust::system::cuda::par, a, b);  //! error thrust-policy //-> thrust::sort(thrust::system::hip::par, a, b);
at::cuda::getCurrentCUDAStream();
c10::cuda::x();
