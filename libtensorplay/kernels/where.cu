/* A choice between the elements of two operands, which are moved as they are. */
#define TP_FAMILY "where"
#include "args_elementwise.h"
#include "units.h"

/* Moves elements of type T, whatever they mean. */
template <typename T>
TP_DEVICE void tp_where(const tp_where_args_t &p) {
  constexpr int N = 16 / sizeof(T);
  T *out = tp_at<T>(p.out);
  const bool *condition = tp_at<bool>(p.condition);
  const T *a = tp_at<T>(p.operands[0]), *b = tp_at<T>(p.operands[1]);
  tp_for_units<N, 4>(p.layout, p.units, [&](const long long (&places)[4], bool single) {
    tp_access access[4];
    for (int k = 0; k < 4; ++k) access[k] = tp_access_of(p.layout, k, p.aligned, single);
    auto flags = tp_unit_read<bool, N>(condition + places[1], access[1]);
    auto x = tp_unit_read<T, N>(a + places[2], access[2]), y = tp_unit_read<T, N>(b + places[3], access[3]);
    for (int i = 0; i < N; ++i) {
      if (!flags.at[i]) x.at[i] = y.at[i];
    }
    tp_unit_write(out + places[0], access[0], x);
  });
}

struct alignas(16) tp_16_bytes {
  unsigned long long at[2];
};

TP_KERNEL(tp_k_where_1, tp_where_args_t) { tp_where<unsigned char>(p); }
TP_KERNEL(tp_k_where_2, tp_where_args_t) { tp_where<unsigned short>(p); }
TP_KERNEL(tp_k_where_4, tp_where_args_t) { tp_where<unsigned>(p); }
TP_KERNEL(tp_k_where_8, tp_where_args_t) { tp_where<unsigned long long>(p); }
TP_KERNEL(tp_k_where_16, tp_where_args_t) { tp_where<tp_16_bytes>(p); }

#undef TP_FAMILY
