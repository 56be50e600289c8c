/* Many runs of bytes, copied by one kernel. */
#define TP_FAMILY "stage"
#include "args_stage.h"
#include "flat.h"

namespace tp_stage {

/* The first pair whose tiles end behind this one. */
template <typename Table>
TP_DEVICE int find(const Table &p, int tile) {
  int low = 0, high = p.count - 1;
  while (low < high) {
    int middle = (low + high) / 2;
    if (p.pairs[middle].end <= tile)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Each thread reads four elements before it writes the first. */
template <typename T>
TP_DEVICE void copy(char *out, const char *source, int nbytes) {
  T *to = reinterpret_cast<T *>(out);
  const T *from = reinterpret_cast<const T *>(source);
  int count = nbytes / static_cast<int>(sizeof(T)), step = tp_threads();
  for (int i = tp_thread(); i < count; i += 4 * step) {
    T x[4];
    for (int j = 0; j < 4; ++j) {
      if (i + j * step < count) x[j] = from[i + j * step];
    }
    for (int j = 0; j < 4; ++j) {
      if (i + j * step < count) to[i + j * step] = x[j];
    }
  }
  int rest = count * static_cast<int>(sizeof(T));
  TP_FOR(i, nbytes - rest) out[rest + i] = source[rest + i];
}

template <typename Table>
TP_DEVICE void run(const Table &p) {
  TP_FOR_TILES(tile, p.pairs[p.count - 1].end, 1) {
    int number = find(p, static_cast<int>(tile));
    const tp_stage_pair_t &pair = p.pairs[number];
    long long first = (tile - (number ? p.pairs[number - 1].end : 0)) * TP_STAGE_TILE;
    int nbytes = tile + 1 == pair.end ? pair.rest : TP_STAGE_TILE;
    unsigned long long addresses =
        reinterpret_cast<unsigned long long>(pair.out) | reinterpret_cast<unsigned long long>(pair.source);
    char *out = tp_at<char>(pair.out) + first;
    const char *source = tp_at<char>(pair.source) + first;
    if (addresses % 16 == 0)
      copy<tp_vector<unsigned long long, 2>>(out, source, nbytes);
    else if (addresses % 4 == 0)
      copy<unsigned>(out, source, nbytes);
    else
      copy<char>(out, source, nbytes);
  }
}

}  // namespace tp_stage

TP_KERNEL(tp_k_stage_8, tp_stage_table_8_t) { tp_stage::run(p); }
TP_KERNEL(tp_k_stage_32, tp_stage_table_32_t) { tp_stage::run(p); }
TP_KERNEL(tp_k_stage_64, tp_stage_table_t) { tp_stage::run(p); }

#undef TP_FAMILY
