float host(float x) { return rsqrtf(x) + std::isfinite(x); }
__device__ float device(float x) { return rsqrtf(x); }
