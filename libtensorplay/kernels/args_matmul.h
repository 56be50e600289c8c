/* Arguments of kernels/matmul.cu (docs/design/products.md). */
#ifndef TP_ARGS_MATMUL_H
#define TP_ARGS_MATMUL_H

#include "args.h"

/* Rows and columns of the result that one block makes. */
#define TP_MATMUL_TILE 64

/* out (batch, m, n) := alpha * a (batch, m, k) @ b (batch, k, n) + beta * addend (batch, m, n), which may be out;
 * strides in elements; the last dimensions of out and addend are contiguous. alpha and beta: real and imaginary part.
 * Blocks: x over column tiles, y over row tiles, z over the batch. */
typedef struct tp_matmul_args {
  const void *a, *b;
  const void *addend; /* or NULL */
  void *out;
  long long batch, m, n, k;
  long long a_batch, a_row, a_col;
  long long b_batch, b_row, b_col;
  long long addend_batch, addend_row;
  long long out_batch, out_row;
  double alpha[2], beta[2];
} tp_matmul_args_t;

#endif
