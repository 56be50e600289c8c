/* Indices that a tensor holds: reading them, and the fault of one that is out of range. */
#ifndef TP_INDEXED_H
#define TP_INDEXED_H

#include "args_index.h"
#include "fault.h"
#include "kernel.h"

/* Kept apart: no index should come here. */
TP_DEVICE_COLD void tp_report_index(const tp_index_t &index, long long value) {
  if (!index.fault) return;
  tp_fault_t *fault = tp_at<tp_fault_t>(index.fault);
  if (atomicCAS(&fault->code, static_cast<int>(TP_FAULT_NONE), static_cast<int>(TP_FAULT_INDEX)) != TP_FAULT_NONE)
    return;
  fault->operation = index.operation;
  fault->value = value;
  fault->limit = index.limit;
}

TP_DEVICE long long tp_load_integer(const void *values, bool is_int64, long long place) {
  return is_int64 ? tp_at<long long>(values)[place] : tp_at<int>(values)[place];
}

/* Counted from the front; negative for one that is not valid, which has been reported. */
TP_DEVICE long long tp_load_index(const tp_index_t &index, long long place) {
  long long value = tp_load_integer(index.values, index.is_int64, place);
  long long wrapped = index.wraps && value < 0 ? value + index.limit : value;
  if (wrapped >= 0 && wrapped < index.limit) return wrapped;
  tp_report_index(index, value);
  return -1;
}

/* The address that an index moves, of elements or units of any layout. */
template <typename T>
TP_DEVICE T *tp_indexed(const tp_indexed_args_t &p, long long index) {
  return reinterpret_cast<T *>(tp_at<char>(p.tensor) + index * p.index.stride);
}

#endif
