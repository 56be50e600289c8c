/* Matrix products in tiles (docs/design/products.md). A block makes one tile of the result at a time:
 * slabs of both operands are converted to what is summed in (half types: float32), in shared memory, where each
 * value is used TP_MATMUL_TILE times, and small patches of the tile are summed in registers. */
#define TP_FAMILY "matmul"
#include "block.h"
#include "element.h"
#include "args_matmul.h"

namespace tp_matmul {

enum { TILE = TP_MATMUL_TILE };

/* ROWS x COLUMNS: a patch, which one thread sums. DEPTH: the slab's share of k. PITCH: from one k to the next
 * in shared memory; no multiple of the GPU's 32 banks, nor of the strides that meet in the host's caches. */
#ifdef __CUDACC__
enum { ROWS = 4, COLUMNS = 4, DEPTH = 16, PITCH = TILE + 4 };
#else
enum { ROWS = 4, COLUMNS = 8, DEPTH = 64, PITCH = TILE + 8 };
#endif

enum { ACROSS = TILE / COLUMNS, PATCHES = ACROSS * (TILE / ROWS), PATCH = ROWS * COLUMNS };

/* T's products are summed in this: Real in what follows. */
template <typename T>
using real_t = decltype(tp_wide(T()));

/* sum += x * y, where sum and y may be vectors. */
template <typename Sum, typename Real>
TP_DEVICE void accumulate(Sum &sum, Real x, Sum y) {
  sum += x * y;
}
template <typename Part>
TP_DEVICE void accumulate(tp_complex<Part> &sum, tp_complex<Part> x, tp_complex<Part> y) {
  sum.re += x.re * y.re;
  sum.re -= x.im * y.im;
  sum.im += x.re * y.im;
  sum.im += x.im * y.re;
}

/* Copies TILE lines of an operand and DEPTH of its k to slab[k][line]; zeros stand for what lies outside.
 * A line is a row of a or a column of b. */
#ifdef __CUDACC__
template <typename T>
TP_DEVICE void load_slab(const T *x, long long line_stride, long long k_stride, long long lines,
                         long long depth, real_t<T> *slab) {
  bool along_k = k_stride == 1; /* neighbouring threads take adjacent elements */
  TP_FOR(i, TILE * DEPTH) {
    int line = along_k ? i / DEPTH : i % TILE, k = along_k ? i % DEPTH : i / TILE;
    bool inside = line < lines && k < depth;
    slab[k * PITCH + line] = inside ? tp_wide(x[line * line_stride + k * k_stride]) : real_t<T>();
  }
}
#else
/* A run of elements: a loop of constant length becomes vectors. */
template <int LENGTH, typename T>
TP_DEVICE void load_run(const T *x, long long stride, long long count, real_t<T> *run) {
  if (count >= LENGTH && stride == 1) {
    for (int i = 0; i < LENGTH; ++i) run[i] = tp_wide(x[i]);
  } else {
    for (int i = 0; i < LENGTH; ++i) run[i] = i < count ? tp_wide(x[i * stride]) : real_t<T>();
  }
}

template <typename T>
TP_DEVICE void load_slab(const T *x, long long line_stride, long long k_stride, long long lines,
                         long long depth, real_t<T> *slab) {
  if (k_stride == 1) {
    TP_FOR(line, TILE) {
      real_t<T> run[DEPTH];
      load_run<DEPTH>(x + line * line_stride, 1, line < lines ? depth : 0, run);
      for (int k = 0; k < DEPTH; ++k) slab[k * PITCH + line] = run[k];
    }
  } else {
    TP_FOR(k, DEPTH) load_run<TILE>(x + k * k_stride, line_stride, k < depth ? lines : 0, slab + k * PITCH);
  }
}
#endif

/* sums += the patch's share of a slab. a and b point at the patch's first row and column. */
#ifdef __CUDACC__
/* Neighbours in a slab, in loads of 16 bytes: of one element each, they would take longer than the sums. */
template <int COUNT, typename Real>
TP_DEVICE void load_line(const Real *slab, Real *line) {
  constexpr int WIDTH = 16 / sizeof(Real);
  struct alignas(16) vector_t {
    Real lanes[WIDTH];
  };
  for (int i = 0; i < COUNT / WIDTH; ++i) {
    vector_t vector = reinterpret_cast<const vector_t *>(slab)[i];
    for (int j = 0; j < WIDTH; ++j) line[i * WIDTH + j] = vector.lanes[j];
  }
}

template <typename Real>
TP_DEVICE void add_slab(const Real *a, const Real *b, Real *sums) {
  for (int k = 0; k < DEPTH; ++k) {
    Real column[ROWS], row[COLUMNS];
    load_line<ROWS>(a + k * PITCH, column);
    load_line<COLUMNS>(b + k * PITCH, row);
    for (int i = 0; i < ROWS; ++i)
      for (int j = 0; j < COLUMNS; ++j) accumulate(sums[i * COLUMNS + j], column[i], row[j]);
  }
}
#else
/* What one instruction adds. The compiler, left alone, makes vectors along k and shuffles them. */
template <typename Real>
struct lanes {
  typedef Real type __attribute__((vector_size(16), may_alias));
};
template <typename Part>
struct lanes<tp_complex<Part>> {
  typedef tp_complex<Part> type;
};

template <typename Real>
TP_DEVICE void add_slab(const Real *a, const Real *b, Real *sums) {
  using lanes_t = typename lanes<Real>::type;
  constexpr int WIDTH = sizeof(lanes_t) / sizeof(Real);
  lanes_t patch[ROWS][COLUMNS / WIDTH];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS / WIDTH; ++j)
      patch[i][j] = *reinterpret_cast<const lanes_t *>(sums + i * COLUMNS + j * WIDTH);
  for (int k = 0; k < DEPTH; ++k) {
    for (int j = 0; j < COLUMNS / WIDTH; ++j) {
      lanes_t lanes = *reinterpret_cast<const lanes_t *>(b + k * PITCH + j * WIDTH);
      for (int i = 0; i < ROWS; ++i) accumulate(patch[i][j], a[k * PITCH + i], lanes);
    }
  }
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS / WIDTH; ++j)
      *reinterpret_cast<lanes_t *>(sums + i * COLUMNS + j * WIDTH) = patch[i][j];
}
#endif

/* alpha or beta. */
template <typename Real>
TP_DEVICE Real factor_of(const double *parts) {
  if constexpr (tp_is_complex<Real>)
    return tp_cast<Real>(tp_complex128{parts[0], parts[1]});
  else
    return static_cast<Real>(parts[0]);
}

/* addend: where the batch's begins, or NULL. */
template <typename T>
TP_DEVICE void store_patch(const tp_matmul_args_t &p, const T *addend, T *out, const real_t<T> *sums, long long row,
                           long long column) {
  using Real = real_t<T>;
  bool scaled = p.alpha[0] != 1 || p.alpha[1] != 0;
  for (int i = 0; i < ROWS && row + i < p.m; ++i)
    for (int j = 0; j < COLUMNS && column + j < p.n; ++j) {
      Real value = sums[i * COLUMNS + j];
      if (scaled) {
        Real sum = value;
        value = Real();
        accumulate(value, factor_of<Real>(p.alpha), sum);
      }
      if (addend)
        accumulate(value, factor_of<Real>(p.beta), tp_wide(addend[(row + i) * p.addend_row + column + j]));
      out[(row + i) * p.out_row + column + j] = tp_cast<T>(value);
    }
}

/* One tile. On the GPU a thread holds the sums of one patch in registers, and a block of fewer threads
 * than patches makes several passes; on the host shared memory holds all sums and one pass does. */
template <typename T>
TP_DEVICE void multiply_tile(const tp_matmul_args_t &p, const T *a, const T *b, const T *addend, T *out,
                             long long row, long long column) {
  TP_SHARED(real_t<T>, slab_a, DEPTH * PITCH);
  TP_SHARED(real_t<T>, slab_b, DEPTH * PITCH);
#ifdef __CUDACC__
  int pass = tp_threads();
  real_t<T> sums[PATCH];
#define TP_SUMS(patch) sums
#else
  int pass = PATCHES;
  TP_SHARED(real_t<T>, sums, PATCHES * PATCH);
#define TP_SUMS(patch) (sums + (patch) * PATCH)
#endif
  for (int first = 0; first < PATCHES; first += pass) {
    int count = tp_tile_count(first, PATCHES, pass);
    TP_FOR(i, count) {
      for (int j = 0; j < PATCH; ++j) TP_SUMS(first + i)[j] = real_t<T>();
    }
    for (long long k = 0; k < p.k; k += DEPTH) {
      load_slab(a + row * p.a_row + k * p.a_col, p.a_row, p.a_col, p.m - row, p.k - k, slab_a);
      load_slab(b + column * p.b_col + k * p.b_row, p.b_col, p.b_row, p.n - column, p.k - k, slab_b);
      tp_block_sync();
      TP_FOR(i, count) {
        int patch_row = (first + i) / ACROSS * ROWS, patch_column = (first + i) % ACROSS * COLUMNS;
        if (row + patch_row < p.m && column + patch_column < p.n)
          add_slab(slab_a + patch_row, slab_b + patch_column, TP_SUMS(first + i));
      }
      tp_block_sync();
    }
    TP_FOR(i, count) {
      int patch_row = (first + i) / ACROSS * ROWS, patch_column = (first + i) % ACROSS * COLUMNS;
      store_patch(p, addend, out, TP_SUMS(first + i), row + patch_row, column + patch_column);
    }
  }
#undef TP_SUMS
}

template <typename T>
TP_DEVICE void multiply(const tp_matmul_args_t &p) {
  for (long long batch = blockIdx.z; batch < p.batch; batch += gridDim.z) {
    const T *a = tp_at<T>(p.a) + batch * p.a_batch, *b = tp_at<T>(p.b) + batch * p.b_batch;
    const T *addend = p.addend ? tp_at<T>(p.addend) + batch * p.addend_batch : nullptr;
    T *out = tp_at<T>(p.out) + batch * p.out_batch;
    for (long long row = static_cast<long long>(blockIdx.y) * TILE; row < p.m;
         row += static_cast<long long>(gridDim.y) * TILE)
      TP_FOR_TILES(column, p.n, TILE) multiply_tile(p, a, b, addend, out, row, column);
  }
}

}  // namespace tp_matmul

TP_KERNEL_COOPERATIVE(tp_k_matmul_f16, tp_matmul_args_t) { tp_matmul::multiply<__half>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_bf16, tp_matmul_args_t) { tp_matmul::multiply<__nv_bfloat16>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_f32, tp_matmul_args_t) { tp_matmul::multiply<float>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_f64, tp_matmul_args_t) { tp_matmul::multiply<double>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_c64, tp_matmul_args_t) { tp_matmul::multiply<tp_complex64>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_c128, tp_matmul_args_t) { tp_matmul::multiply<tp_complex128>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_i64, tp_matmul_args_t) { tp_matmul::multiply<long long>(p); }

#undef TP_FAMILY
