/* A fault: an error that only the device sees. Kernels record the first one, the host reads it when it
 * waits (tp__device_check_fault). Shared by C and kernels. */
#ifndef TP_FAULT_H
#define TP_FAULT_H

enum { TP_FAULT_NONE = 0, TP_FAULT_INDEX = 1 };

typedef struct tp_fault {
  int code;        /* TP_FAULT_*; written by compare-and-swap, first one wins */
  int operation;   /* TP_FAULT_OP_* */
  long long value; /* the index */
  long long limit; /* valid are 0 <= value < limit */
} tp_fault_t;

enum { TP_FAULT_OP_INDEX_SELECT = 0, TP_FAULT_OP_EMBEDDING = 1 };

#endif
