__global__ void k(cudaTextureObject_t t, float* x) {  //-> __global__ void k(hipTextureObject_t t, float* x) {
  x[0] = tex2D<float>(t, 0.5f, 0.5f);  //! error texture
  x[1] = tex1Dfetch<float>(t, 3);  //! error texture
  x[2] = texture_weight(3);
  x[3] = object.tex2D(1, 2);
}
int tex2DSize(int a);
// the texture of this code
