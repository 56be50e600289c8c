/* Pinned memory as NumPy's arrays. One call from Python makes and fills three objects: through cffi's functions, its
 * buffers and np.ndarray it takes four times as long. NumPy's functions have fixed places in a table (its C ABI). */

typedef PyObject *array_new(void *type, PyObject *dtype, int ndim, Py_ssize_t *shape, Py_ssize_t *strides, void *data,
                            int flags, PyObject *like);
typedef int array_set_base(PyObject *array, PyObject *base);
enum { ARRAY_TYPE = 2, ARRAY_NEW = 94, ARRAY_SET_BASE = 282, ARRAY_WRITEABLE = 0x400, ARRAY_MOST_DIMS = 16 };

static void **array_api;

static void array_give_back(PyObject *capsule) {
  void *memory = PyCapsule_GetPointer(capsule, NULL);
  PyThreadState *state = PyEval_SaveThread();
  tp_pinned_free(memory);
  PyEval_RestoreThread(state);
}

/* Bytes of the elements; -1 for a shape that is none. */
static Py_ssize_t array_nbytes(PyObject *sizes, Py_ssize_t nbytes, Py_ssize_t *shape) {
  Py_ssize_t ndim = PyTuple_Size(sizes);
  if (ndim > ARRAY_MOST_DIMS) return -1;
  for (Py_ssize_t i = 0; i < ndim; i++) {
    shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(sizes, i));
    if (shape[i] < 0 || __builtin_mul_overflow(nbytes, shape[i], &nbytes)) return -1;
  }
  return nbytes;
}

/* Takes over the memory: an array of it, or NULL with an exception. */
static PyObject *array_over(void *memory, PyObject *dtype, int ndim, Py_ssize_t *shape) {
  PyObject *capsule = memory ? PyCapsule_New(memory, NULL, array_give_back) : NULL;
  if (memory && !capsule) {
    tp_pinned_free(memory);
    return NULL;
  }
  Py_INCREF(dtype); /* which is used up */
  PyObject *array = ((array_new *)array_api[ARRAY_NEW])(array_api[ARRAY_TYPE], dtype, ndim, shape, NULL, memory,
                                                        memory ? ARRAY_WRITEABLE : 0, NULL);
  if (!array) {
    Py_XDECREF(capsule);
  } else if (capsule && ((array_set_base *)array_api[ARRAY_SET_BASE])(array, capsule) < 0) { /* uses it up as well */
    Py_DECREF(array);
    return NULL;
  }
  return array;
}

/* (shape, dtype, bytes of an element): an array; None for a shape that is none, or when C has refused. */
static PyObject *array_make(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  (void)self;
  (void)count;
  Py_ssize_t shape[ARRAY_MOST_DIMS], nbytes = PyLong_AsSsize_t(arguments[2]);
  PyObject *sizes = PySequence_Tuple(arguments[0]);
  if (sizes) nbytes = array_nbytes(sizes, nbytes, shape);
  int ndim = sizes ? (int)PyTuple_Size(sizes) : 0;
  Py_XDECREF(sizes);
  if (!sizes || nbytes < 0) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  PyThreadState *state = PyEval_SaveThread();
  void *memory = tp_pinned_alloc((size_t)nbytes);
  PyEval_RestoreThread(state);
  if (!memory && nbytes) Py_RETURN_NONE;
  return array_over(memory, arguments[1], ndim, shape);
}

/* That function as an object, which the caller owns; NULL where it cannot be made. */
static void *tp_array_maker(void *capsule) {
  static PyMethodDef method = {"pinned_array", (PyCFunction)(void (*)(void))array_make, METH_FASTCALL, NULL};
  PyGILState_STATE state = PyGILState_Ensure();
  array_api = PyCapsule_GetPointer(capsule, NULL);
  PyObject *made = array_api ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
  PyErr_Clear();
  PyGILState_Release(state);
  return made;
}
