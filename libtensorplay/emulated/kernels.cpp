/* The kernels of the GPU, built by the host's compiler; each registers itself while the library is loaded.
 * One translation unit, so that what the families share is compiled once. */
#include "../kernels/copy.cu"
#include "../kernels/elementwise.cu"
#include "../kernels/fill.cu"
#include "../kernels/index.cu"
#include "../kernels/matmul.cu"
#include "../kernels/normalize.cu"
#include "../kernels/random.cu"
#include "../kernels/reduce.cu"
