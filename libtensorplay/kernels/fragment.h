/* Matrices of half types in the registers of a warp, which the GPU's tensor cores multiply. GPU only; a block that uses
 * these has whole warps, and every thread of a warp must reach each call with the same places. */
#ifndef TP_FRAGMENT_H
#define TP_FRAGMENT_H

#include "block.h"
#include "element.h"

/* Whether the GPU that is compiled for multiplies matrices of T. */
#if __CUDA_ARCH__ >= 800
template <typename T>
constexpr bool tp_has_fragments = tp_same<T, __half>::value || tp_same<T, __nv_bfloat16>::value;
#else
template <typename T>
constexpr bool tp_has_fragments = tp_same<T, __half>::value;
#endif

/* 16 lines (rows of a left operand or columns of a right one) by 16 of k. Quarters of 8 x 8: words 0 and 2 are of the
 * first 8 lines, words 0 and 1 of the first 8 k. Thread 4 * i + j has elements 2 * j and 2 * j + 1 along k of line i of
 * each quarter. */
struct tp_fragment {
  unsigned words[4];
};

/* From shared memory: first is the fragment's first element, at an address of whole 16 bytes. Where along_k, lines are
 * runs of elements, pitch apart; else those of one k are. pitch: a multiple of 8. */
template <typename T>
TP_DEVICE tp_fragment tp_fragment_load(const T *first, int pitch, bool along_k) {
  /* Threads 8 * q to 8 * q + 7 name the 8 runs of quarter q. */
  int lane = tp_thread() % TP_WARP, run = lane % 8, line = lane / 8 % 2 * 8, k = lane / 16 * 8;
  const T *at = first + (along_k ? (line + run) * pitch + k : (k + run) * pitch + line);
  tp_fragment x;
  /* One predicated instruction of each kind: a branch would take longer. */
  asm volatile(
      "{\n"
      ".reg .pred along;\n"
      "setp.ne.s32 along, %5, 0;\n"
      "@along ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      "@!along ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "=r"(x.words[0]), "=r"(x.words[1]), "=r"(x.words[2]), "=r"(x.words[3])
      : "r"(static_cast<unsigned>(__cvta_generic_to_shared(at))), "r"(static_cast<int>(along_k))
      : "memory");
  return x;
}

/* sums += x * y for lines 0 to 7 (half: 0) or 8 to 15 (1) of y. Thread 4 * i + j has the sums of lines i of x and
 * 2 * j and 2 * j + 1 of y, then those of line i + 8 of x. */
template <typename T>
TP_DEVICE void tp_fragment_multiply(const tp_fragment &x, const tp_fragment &y, int half, float (&sums)[4]) {
  const unsigned *a = x.words, *b = y.words + half;
#if __CUDA_ARCH__ >= 800
#define TP_MULTIPLY(type)                                                                                            \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                        \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                     \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[2]))
  if constexpr (tp_same<T, __half>::value)
    TP_MULTIPLY("f16");
  else
    TP_MULTIPLY("bf16");
#undef TP_MULTIPLY
#else
  for (int k = 0; k < 2; ++k) /* 8 at once */
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[2 * k]));
#endif
}

#endif
