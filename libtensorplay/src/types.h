/* Types shared by the files of libtensorplay, and the glossary of its nouns, from large to small:
 *
 *   device      one GPU, by index; `started` once this library has made its context.
 *   stream      an interned object per CUDA stream; current streams are kept per thread and device.
 *   segment     a region obtained from the driver in one piece.
 *   block       a piece of a segment: what one allocation holds, or a free piece.
 *   pool        the free blocks of one device that serve one size class (small, large).
 *   storage     one block, or memory that another library lends (foreign), with its owners counted; what views of one
 *               memory share.
 *   tensor      a storage with dtype, shape, strides and offset: the handle that Python holds.
 *   kernel      one compiled function, by name; a family's kernels form one image.
 *   fault       an error that only the device sees, kept in a word that the host reads when it waits. */
#ifndef TP_TYPES_H
#define TP_TYPES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../kernels/dtype_codes.h"
#include "tensorplay.h"

#define TP_KiB ((size_t)1024)
#define TP_MiB (1024 * TP_KiB)
#define TP_GiB (1024 * TP_MiB)
#define TP_MAX_DEVICES 64

enum {
#define TP_STATUS(name, value, exception, meaning) TP_##name = value,
#include "status.def"
#undef TP_STATUS
};

typedef struct tp__block tp__block_t;
typedef struct tp__foreign tp__foreign_t;

typedef struct tp__storage {
  _Atomic int32_t references;
  int32_t device;
  void *data; /* device address; NULL when nbytes is 0 */
  size_t nbytes;
  tp__block_t *block;     /* NULL when nbytes is 0, or the memory is another library's */
  tp__foreign_t *foreign; /* NULL when it is ours */
} tp__storage_t;

struct tp_tensor {
  _Atomic int32_t references;
  int32_t dtype;
  int32_t device;
  int32_t ndim;
  bool contiguous;
  int64_t numel;
  void *data; /* storage->data + offset * itemsize */
  tp__storage_t *storage;
  int64_t offset; /* elements from the storage's start */
  int64_t shape[TP_MAX_NDIM];
  int64_t strides[TP_MAX_NDIM]; /* elements */
};

#endif
