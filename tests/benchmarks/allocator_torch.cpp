// torch's caching allocator as the functions that allocator_driver.c times; bench_allocator.py compiles it.
#include <c10/cuda/CUDACachingAllocator.h>

extern "C" void *torch_allocate(size_t nbytes, void *) { return c10::cuda::CUDACachingAllocator::raw_alloc(nbytes); }

extern "C" void torch_release(void *address) { c10::cuda::CUDACachingAllocator::raw_delete(address); }
