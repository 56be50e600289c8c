/* Matrix products in tiles (docs/design/products.md). A block makes one tile of the result at a time:
 * slabs of both operands are converted to what is summed in (half types: float32), in shared memory, where each
 * value is used TP_MATMUL_TILE times, and small patches of the tile are summed in registers. */
#define TP_FAMILY "matmul"
#include "block.h"
#include "element.h"
#include "args_matmul.h"
#ifdef __CUDACC__
#include "fragment.h"
#endif

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
TP_DEVICE void store_sum(const tp_matmul_args_t &p, const T *addend, T *out, real_t<T> sum, long long row,
                         long long column) {
  using Real = real_t<T>;
  Real value = sum;
  if (p.alpha[0] != 1 || p.alpha[1] != 0) {
    value = Real();
    accumulate(value, factor_of<Real>(p.alpha), sum);
  }
  if (addend) accumulate(value, factor_of<Real>(p.beta), tp_wide(addend[row * p.addend_row + column]));
  out[row * p.out_row + column] = tp_cast<T>(value);
}

template <typename T>
TP_DEVICE void store_patch(const tp_matmul_args_t &p, const T *addend, T *out, const real_t<T> *sums, long long row,
                           long long column) {
  for (int i = 0; i < ROWS && row + i < p.m; ++i)
    for (int j = 0; j < COLUMNS && column + j < p.n; ++j)
      store_sum(p, addend, out, sums[i * COLUMNS + j], row + i, column + j);
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

#ifdef __CUDACC__
/* The same for half types, on tensor cores. Elements stay as they are, and so does their order: a slab's runs are lines
 * (rows of a, columns of b) or those of one k, as the operand has them; TILE runs of TILE elements either way. */
namespace warps {

/* ROWS x COLUMNS: a patch, which one warp sums. DEPTH: the slab's share of k. PITCH: from one run to the next in shared
 * memory; 8 neighbouring ones lie in different banks. UNIT: elements that are moved together. */
enum { ROWS = 16, COLUMNS = 32, DEPTH = TILE, PITCH = TILE + 8, UNIT = 8 };
enum { ACROSS = TILE / COLUMNS, PATCHES = ACROSS * (TILE / ROWS), EIGHTS = COLUMNS / 8 };
enum { UNITS = TILE * DEPTH / UNIT, SHARE = UNITS / TP_BLOCK_THREADS };

/* UNIT elements of two bytes. */
struct alignas(16) unit_t {
  unsigned words[4];
};

/* What becomes a slab: of its runs, and of each run's elements, so many are inside the operand. */
template <typename T>
struct part_t {
  const T *first;
  long long run_stride, stride;
  int runs, length;

  __device__ part_t(const T *x, long long line_stride, long long k_stride, long long lines, long long depth)
      : first(x),
        run_stride(k_stride == 1 ? line_stride : k_stride),
        stride(k_stride == 1 ? 1 : line_stride),
        runs(tp_tile_count(0, k_stride == 1 ? lines : depth, TILE)),
        length(tp_tile_count(0, k_stride == 1 ? depth : lines, TILE)) {}

  /* Whether every unit is aligned, and inside or outside as a whole. */
  __device__ bool in_units() const {
    return stride == 1 && length % UNIT == 0 && run_stride % UNIT == 0 &&
           reinterpret_cast<unsigned long long>(first) % sizeof(unit_t) == 0;
  }
};

/* Unit number i of a slab is in this run and begins with that element. */
TP_DEVICE int run_of(unsigned i) { return i / (TILE / UNIT); }
TP_DEVICE int begin_of(unsigned i) { return i % (TILE / UNIT) * UNIT; }

template <typename T>
TP_DEVICE unit_t read_unit(const part_t<T> &part, int i) {
  int run = run_of(i), begin = begin_of(i);
  if (run >= part.runs || begin >= part.length) return unit_t();
  return *reinterpret_cast<const unit_t *>(part.first + run * part.run_stride + begin);
}

template <typename T>
TP_DEVICE void write_unit(T *slab, int i, const unit_t &unit) {
  *reinterpret_cast<unit_t *>(slab + run_of(i) * PITCH + begin_of(i)) = unit;
}

/* Both slabs, of parts in units. A thread reads its share before it writes the first: it waits for memory once. */
template <typename T>
TP_DEVICE void load_units(const part_t<T> &a, const part_t<T> &b, T *slab_a, T *slab_b) {
  for (int first = tp_thread(); first < UNITS; first += SHARE * tp_threads()) {
    unit_t units_a[SHARE], units_b[SHARE];
    for (int j = 0; j < SHARE; ++j) {
      int i = tp_least(first + j * tp_threads(), UNITS - 1);
      units_a[j] = read_unit(a, i);
      units_b[j] = read_unit(b, i);
    }
    for (int j = 0; j < SHARE; ++j) {
      int i = tp_least(first + j * tp_threads(), UNITS - 1); /* the last one more than once, with the same elements */
      write_unit(slab_a, i, units_a[j]);
      write_unit(slab_b, i, units_b[j]);
    }
  }
}

/* One slab, of any part; zeros stand for what lies outside, here and in units. */
template <typename T>
TP_DEVICE_COLD void load_elements(part_t<T> part, T *slab) {
#pragma unroll 1
  TP_FOR(i, UNITS) {
    int run = run_of(i), begin = begin_of(i), count = run < part.runs ? part.length - begin : 0;
    const T *from = part.first + run * part.run_stride + begin * part.stride;
    T elements[UNIT];
    for (int j = 0; j < UNIT; ++j) elements[j] = j < count ? from[j * part.stride] : T();
    for (int j = 0; j < UNIT; ++j) slab[run * PITCH + begin + j] = elements[j];
  }
}

/* sums += the patch's share of a slab. a and b point at the patch's first row and column. */
template <typename T>
TP_DEVICE void add_slab(const T *a, const T *b, bool a_along_k, bool b_along_k, float (&sums)[EIGHTS][4]) {
  int b_line = b_along_k ? PITCH : 1, a_k = a_along_k ? 1 : PITCH, b_k = b_along_k ? 1 : PITCH;
  for (int k = 0; k < DEPTH; k += 16) {
    tp_fragment rows = tp_fragment_load(a + k * a_k, PITCH, a_along_k);
    for (int j = 0; j < EIGHTS; j += 2) {
      tp_fragment columns = tp_fragment_load(b + k * b_k + 8 * j * b_line, PITCH, b_along_k);
      tp_fragment_multiply<T>(rows, columns, 0, sums[j]);
      tp_fragment_multiply<T>(rows, columns, 1, sums[j + 1]);
    }
  }
}

/* The patch of a warp as rows, PITCH apart. */
TP_DEVICE void write_sums(const float (&sums)[EIGHTS][4], float *patch) {
  int lane = tp_thread() % TP_WARP;
  float *at = patch + lane / 4 * PITCH + lane % 4 * 2;
  for (int j = 0; j < EIGHTS; ++j)
    for (int s = 0; s < 4; ++s) at[s / 2 * 8 * PITCH + j * 8 + s % 2] = sums[j][s];
}

/* One tile, by a block of whole warps; fewer than there are patches make several passes. */
template <typename T>
TP_DEVICE void multiply_tile(const tp_matmul_args_t &p, const T *a, const T *b, const T *addend, T *out,
                             long long row, long long column) {
  TP_SHARED(float, patches, TILE * PITCH); /* after the last slab, where these were */
  static_assert(sizeof(patches) == 2 * TILE * PITCH * sizeof(T), "two slabs take the room of one tile");
  T *slab_a = reinterpret_cast<T *>(patches), *slab_b = slab_a + TILE * PITCH;
  bool a_along_k = p.a_col == 1, b_along_k = p.b_row == 1;
  int a_line = a_along_k ? PITCH : 1, b_line = b_along_k ? PITCH : 1;
  int lane = tp_thread() % TP_WARP, pass = tp_threads() / TP_WARP;
  for (int first = 0; first < PATCHES; first += pass) {
    int patch = first + tp_thread() / TP_WARP;
    int patch_row = patch / ACROSS * ROWS, patch_column = patch % ACROSS * COLUMNS;
    bool live = patch < PATCHES && row + patch_row < p.m && column + patch_column < p.n;
    float sums[EIGHTS][4] = {};
    for (long long k = 0; k < p.k; k += DEPTH) {
      part_t<T> part_a(a + row * p.a_row + k * p.a_col, p.a_row, p.a_col, p.m - row, p.k - k);
      part_t<T> part_b(b + column * p.b_col + k * p.b_row, p.b_col, p.b_row, p.n - column, p.k - k);
      if (part_a.in_units() && part_b.in_units()) {
        load_units(part_a, part_b, slab_a, slab_b);
      } else {
        load_elements(part_a, slab_a);
        load_elements(part_b, slab_b);
      }
      tp_block_sync();
      if (live) add_slab(slab_a + patch_row * a_line, slab_b + patch_column * b_line, a_along_k, b_along_k, sums);
      tp_block_sync();
    }
    if (live) {
      float *sum = patches + patch_row * PITCH + patch_column;
      write_sums(sums, sum);
      tp_warp_sync();
      long long l = column + patch_column + lane;
#pragma unroll 4
      for (int i = 0; i < ROWS && row + patch_row + i < p.m && l < p.n; ++i)
        store_sum(p, addend, out, sum[i * PITCH + lane], row + patch_row + i, l);
    }
    tp_block_sync();
  }
}

}  // namespace warps
#endif

/* By tensor cores where the GPU has them for T. */
template <typename T>
TP_DEVICE void make_tile(const tp_matmul_args_t &p, const T *a, const T *b, const T *addend, T *out, long long row,
                         long long column) {
#ifdef __CUDACC__
  if constexpr (tp_has_fragments<T>)
    warps::multiply_tile(p, a, b, addend, out, row, column);
  else
#endif
    multiply_tile(p, a, b, addend, out, row, column);
}

template <typename T>
TP_DEVICE void multiply(const tp_matmul_args_t &p) {
  for (long long batch = blockIdx.z; batch < p.batch; batch += gridDim.z) {
    const T *a = tp_at<T>(p.a) + batch * p.a_batch, *b = tp_at<T>(p.b) + batch * p.b_batch;
    const T *addend = p.addend ? tp_at<T>(p.addend) + batch * p.addend_batch : nullptr;
    T *out = tp_at<T>(p.out) + batch * p.out_batch;
    for (long long row = static_cast<long long>(blockIdx.y) * TILE; row < p.m;
         row += static_cast<long long>(gridDim.y) * TILE)
      TP_FOR_TILES(column, p.n, TILE) make_tile(p, a, b, addend, out, row, column);
  }
}

}  // namespace tp_matmul

TP_KERNEL_RESIDENT(tp_k_matmul_f16, tp_matmul_args_t, 2) { tp_matmul::multiply<__half>(p); }
TP_KERNEL_RESIDENT(tp_k_matmul_bf16, tp_matmul_args_t, 2) { tp_matmul::multiply<__nv_bfloat16>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_f32, tp_matmul_args_t) { tp_matmul::multiply<float>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_f64, tp_matmul_args_t) { tp_matmul::multiply<double>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_c64, tp_matmul_args_t) { tp_matmul::multiply<tp_complex64>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_c128, tp_matmul_args_t) { tp_matmul::multiply<tp_complex128>(p); }
TP_KERNEL_COOPERATIVE(tp_k_matmul_i64, tp_matmul_args_t) { tp_matmul::multiply<long long>(p); }

#undef TP_FAMILY
