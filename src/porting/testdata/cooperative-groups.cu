#include <cooperative_groups/memcpy_async.h>  //! error cooperative-groups
auto part = cg::labeled_partition(block, label);  //! error cooperative-groups
auto block = cg::this_thread_block();
auto tile = cg::tiled_partition<32>(block);
float v = cg::reduce(tile, x, cg::plus<float>());
tile.sync();
v = tile.shfl_down(v, 16);
my::memcpy_async(a, b);
