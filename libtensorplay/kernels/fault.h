/* A fault: an error that only the device sees. Kernels record the first one, the host reads it when it
 * waits (tp__device_check_fault). Shared by C and kernels. */
#ifndef TP_FAULT_H
#define TP_FAULT_H

enum { TP_FAULT_NONE = 0, TP_FAULT_INDEX = 1 };

typedef struct tp_fault {
  int code;        /* TP_FAULT_*; written by compare-and-swap, first one wins */
  int operation;   /* TP_FAULT_OP_* */
  long long value; /* the index */
  long long limit; /* of rows, or of a dimension */
} tp_fault_t;

enum {
  TP_FAULT_OP_INDEX_SELECT = 0,
  TP_FAULT_OP_EMBEDDING = 1,
  TP_FAULT_OP_GATHER = 2,
  TP_FAULT_OP_SCATTER = 3,
  TP_FAULT_OP_INDEX = 4,
  TP_FAULT_OP_INDEX_PUT = 5
};

#endif
