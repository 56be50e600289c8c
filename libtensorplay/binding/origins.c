/* The hook of tp_origin_set_hook. In C since no bytecode may run there: a signal's handler would raise its exception
 * inside a release function. tensorplay.cuda._origins owns the two tables and explains them. */

enum { ORIGIN_DEPTH = 64, ORIGIN_NO_FRAME = -1, ORIGIN_NO_ROOM = -2 };

typedef struct origin_place {
  PyObject *code;
  intptr_t line;
} origin_place;

static PyObject *origin_numbers; /* dict: the bytes of a stack's places -> its number */
static PyObject *origin_stacks;  /* dict: number -> (code, line, code, line, ...), innermost first */
static Py_ssize_t origin_room;
static int64_t origin_last;

/* The innermost frames of this thread; each holds its code. */
static int origin_walk(origin_place *places) {
  int count = 0;
  PyObject *frame = (PyObject *)PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame && frame != Py_None && count < ORIGIN_DEPTH) {
    places[count].code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
    places[count++].line = PyFrame_GetLineNumber((PyFrameObject *)frame);
    PyObject *outer = PyObject_GetAttrString(frame, "f_back");
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return count;
}

/* A new number for a stack; 0 without host memory. */
static int64_t origin_add(PyObject *key, const origin_place *places, int count) {
  if (PyDict_Size(origin_numbers) >= origin_room) return ORIGIN_NO_ROOM;
  PyObject *stack = PyTuple_New(2 * count);
  for (int i = 0; stack && i < count; i++) {
    Py_INCREF(places[i].code);
    PyTuple_SetItem(stack, 2 * i, places[i].code);
    PyTuple_SetItem(stack, 2 * i + 1, PyLong_FromSsize_t(places[i].line));
  }
  PyObject *number = PyLong_FromLongLong(origin_last + 1);
  int added = stack && number && PyDict_SetItem(origin_stacks, number, stack) == 0 &&
              PyDict_SetItem(origin_numbers, key, number) == 0;
  Py_XDECREF(stack);
  Py_XDECREF(number);
  return added ? ++origin_last : 0;
}

static int64_t origin_find(void) {
  origin_place places[ORIGIN_DEPTH];
  int count = origin_walk(places);
  if (count == 0) return ORIGIN_NO_FRAME;
  PyObject *key = PyBytes_FromStringAndSize((const char *)places, count * (Py_ssize_t)sizeof *places);
  PyObject *number = key ? PyDict_GetItem(origin_numbers, key) : NULL;
  int64_t found = number ? PyLong_AsLongLong(number) : key ? origin_add(key, places, count) : 0;
  Py_XDECREF(key);
  for (int i = 0; i < count; i++) Py_DECREF(places[i].code);
  return found;
}

static int64_t origin_hook(void) {
  if (!Py_IsInitialized()) return 0;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* whoever frees may be about to raise */
  int64_t number = origin_find();
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
  return number;
}

/* Gives the hook the two tables, which must never go away, and room for so many stacks. */
static tp_origin_hook_t tp_origin_tables(void *numbers, void *stacks, int64_t room) {
  origin_numbers = numbers;
  origin_stacks = stacks;
  origin_room = (Py_ssize_t)room;
  return origin_hook;
}
