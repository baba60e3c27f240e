__global__ void k(cudaTextureObject_t t, float* x) {  //-> __global__ void k(hipTextureObject_t t, float* x) {
  x[0] = tex2D<float>(t, 0.5f, 0.5f);  //! error texture //-> x[0] = portolan::tex2D<float>(t, 0.5f, 0.5f);
  x[1] = tex1Dfetch<float>(t, 3);  //! error texture //-> x[1] = portolan::tex1Dfetch<float>(t, 3);
  x[4] = tex3D<float>(t, 1, 2, 3);  //! error texture
  x[2] = texture_weight(3);
  x[3] = object.tex2D(1, 2);
}
int tex2DSize(int a);
// the texture of this code
void host(cudaTextureObject_t t, cudaResourceDesc* r, cudaTextureDesc* d) {  //-> void host(hipTextureObject_t t, hipResourceDesc* r, hipTextureDesc* d) {
  cudaCreateTextureObject(&t, r, d, nullptr);  //-> portolan::create_texture_object(&t, r, d, nullptr);
  cudaDestroyTextureObject(t);  //-> portolan::destroy_texture_object(t);
  cudaMallocArray(&a, &c, 4, 4);  //! error texture //-> hipMallocArray(&a, &c, 4, 4);
}
__device__ int no_texture(int a) { return tex2D_at(a, 1) + tex3Dsomething(2); }
