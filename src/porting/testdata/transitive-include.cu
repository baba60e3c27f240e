#include <thrust/device_vector.h>  //+ #include <thrust/sequence.h>
#include <thrust/sort.h>
#include <vector>
void f(thrust::device_vector<int>& v) { thrust::sequence(v.begin(), v.end()); thrust::sort(v.begin(), v.end()); }
void g() { std::sort(a, b); my::sequence(a); }
