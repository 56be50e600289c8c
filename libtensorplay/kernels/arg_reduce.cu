/* The places of the highest and lowest elements along one dimension (docs/design/reductions.md). Elements are compared
 * by their keys, which have 32 or 64 bits; equal ones by their places, so that the order of comparisons does not
 * matter. */
#define TP_FAMILY "arg_reduce"
#include "block.h"
#include "key.h"
#include "layout.h"
#include "visit.h"
#include "args_arg_reduce.h"

namespace tp_arg_reduce {

/* Loads of a thread that wait together. */
enum { BATCH = 8 };

template <typename Key>
struct best {
  Key key;
  long long place;
};

/* What every element beats. */
template <typename Key>
TP_DEVICE best<Key> none() {
  return {0, 0x7fffffffffffffffll};
}

template <typename Key>
TP_DEVICE best<Key> better(best<Key> a, best<Key> b) {
  return b.key > a.key || (b.key == a.key && b.place < a.place) ? b : a;
}

template <typename Key>
struct elements_of {
  template <typename T>
  struct takes {
    static constexpr bool value = !tp_is_complex<T> && (sizeof(T) == 8) == (sizeof(Key) == 8);
  };
};
/* The key that is the highest for the element that is wanted; NaN always wins. */
template <typename T>
TP_DEVICE tp_key_t<T> rank(T x, int op) {
  tp_key_t<T> key = tp_key(x);
  bool turned = op == TP_ARG_LOWEST && !(tp_has_fractions<T> && key == tp_key_of_nan<T>);
  return static_cast<tp_key_t<T>>(turned ? ~key : key);
}

/* A thread's share, `lane` of a group, in the elements begin .. end-1 of a result. */
template <typename Key>
TP_DEVICE best<Key> best_element(const tp_arg_reduce_args_t &p, long long k, long long begin, long long end, int lane,
                                 int group) {
  best<Key> result = none<Key>();
  long long start = tp_layout_offset(p.kept, 1, k);
  tp_visit<elements_of<Key>::template takes>(p.dtype, [&](auto type) {
    typedef typename decltype(type)::element T;
    const T *input = tp_at<T>(p.input) + start + (begin + lane) * p.stride;
    long long step = group * p.stride, i = begin + lane;
    /* The thread's places rise, so that of equal elements the one it has is the first. */
    auto take = [&](T x, long long place) {
      Key key = rank(x, p.op);
      if (key > result.key || result.place == none<Key>().place) result = {key, place};
    };
    for (; i + (BATCH - 1) * group < end; i += BATCH * group, input += BATCH * step) {
      T x[BATCH];
      for (int j = 0; j < BATCH; ++j) x[j] = input[j * step];
      for (int j = 0; j < BATCH; ++j) take(x[j], i + j * group);
    }
    for (; i < end; i += group, input += step) take(*input, i);
  });
  return result;
}

/* The same of what the splits found. */
template <typename Key>
TP_DEVICE best<Key> best_split(const tp_arg_reduce_args_t &p, long long k, int lane, int group) {
  best<Key> result = none<Key>();
  const Key *keys = tp_at<Key>(p.keys) + k;
  const long long *places = tp_at<long long>(p.places) + k;
  for (long long i = lane; i < p.size; i += group)
    result = better(result, best<Key>{keys[i * p.kept.numel], places[i * p.kept.numel]});
  return result;
}

template <typename Key>
TP_DEVICE void reduce(const tp_arg_reduce_args_t &p) {
  TP_SHARED(best<Key>, scratch, TP_SCRATCH);
  int group = tp_group_size(p.group), groups = tp_threads() / group, lane = tp_thread() % group;
  long long items = p.kept.numel * p.splits;
  TP_FOR_TILES(first, items, groups) {
    long long item = first + tp_thread() / group;
    bool inside = tp_thread() / group < groups && item < items;
    best<Key> result = none<Key>();
    if (inside) {
      long long split = p.splits == 1 ? 0 : item / p.kept.numel, k = item - split * p.kept.numel;
      result = p.input ? best_element<Key>(p, k, split * p.split, tp_least((split + 1) * p.split, p.size), lane, group)
                       : best_split<Key>(p, k, lane, group);
    }
    result = tp_group_reduce(result, group, better<Key>, scratch);
    if (inside && lane == 0) {
      if (p.out) {
        tp_at<long long>(p.out)[item] = result.place;
      } else {
        tp_at<Key>(p.keys)[item] = result.key;
        tp_at<long long>(p.places)[item] = result.place;
      }
    }
  }
}

}  // namespace tp_arg_reduce

TP_KERNEL_COOPERATIVE(tp_k_arg_reduce_32, tp_arg_reduce_args_t) { tp_arg_reduce::reduce<unsigned>(p); }
TP_KERNEL_COOPERATIVE(tp_k_arg_reduce_64, tp_arg_reduce_args_t) { tp_arg_reduce::reduce<unsigned long long>(p); }

#undef TP_FAMILY
