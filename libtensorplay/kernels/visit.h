/* Code for the element type of a dtype code: what needs an inner loop of its own for each of them. */
#ifndef TP_VISIT_H
#define TP_VISIT_H

#include "element.h"

/* Says which type is meant. */
template <typename T>
struct tp_type {
  typedef T element;
};

/* f(tp_type<T>()) where T is the dtype's element type, if TAKES<T>::value; the branch is the same for all threads. */
template <template <typename> class TAKES, typename F>
TP_DEVICE void tp_visit(int dtype, F f) {
  switch (dtype) {
#define TP_DTYPE(name, suffix, code, ctype, itemsize, category) \
  case code:                                                    \
    if constexpr (TAKES<ctype>::value) f(tp_type<ctype>());     \
    break;
#include "dtypes.def"
#undef TP_DTYPE
  }
}

#endif
