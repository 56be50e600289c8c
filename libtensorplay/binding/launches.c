/* Launches of graphs. Replays are called as often as any function, and cost little more than CUDA's launch: so
 * arguments are read here, where cffi's functions would take a fifth of a replay's time, and for the lists of
 * stage_and_launch twice as long. */
#include <structmember.h>

/* What is known by address; the module that asks for the functions holds it. */
static PyTypeObject *launch_tensors; /* the class of tensors */
static Py_ssize_t launch_offset;     /* where one has its handle */
static struct _cffi_ctypedescr *launch_graph, *launch_stream, *launch_tensor; /* cffi's types of handles */

/* cffi's object for a handle, as cffi's source declares it. To ask cffi's function takes as long as all else that is
 * done for a tensor here. */
typedef struct launch_cdata {
  PyObject_HEAD
  struct _cffi_ctypedescr *type;
  void *pointer;
} launch_cdata;
static PyTypeObject *launch_known; /* of such objects; NULL where the declaration does not hold */

static void launch_probe(void) {
  static char place;
  PyObject *made = _cffi_from_c_pointer(&place, launch_tensor);
  const launch_cdata *data = (const launch_cdata *)made;
  if (made && data->type == launch_tensor && data->pointer == &place) launch_known = Py_TYPE(made);
  Py_XDECREF(made);
}

/* NULL where the object is no handle of the type, mostly with an exception. */
static void *launch_pointer(PyObject *object, struct _cffi_ctypedescr *type) {
  const launch_cdata *data = (const launch_cdata *)object;
  if (Py_TYPE(object) == launch_known && data->type == type) return data->pointer;
  return _cffi_to_c_pointer(object, type);
}

/* (graph) or (graph, stream): the status. */
static PyObject *launch_replay(PyObject *self, PyObject *const *arguments, Py_ssize_t size) {
  tp_graph_t *graph = launch_pointer(arguments[0], launch_graph);
  tp_stream_t *stream = size > 1 ? launch_pointer(arguments[1], launch_stream) : NULL;
  (void)self;
  if (PyErr_Occurred()) return NULL;
  PyThreadState *state = PyEval_SaveThread(); /* CUDA waits where its queue is full */
  int32_t status = tp_graph_replay(graph, stream);
  PyEval_RestoreThread(state);
  return PyLong_FromLong(status);
}

/* The tensors of a list or tuple, each of which is held from here on, and their handles: how many, up to the first that
 * is no tensor of this library. */
static Py_ssize_t launch_read(PyObject *tensors, Py_ssize_t count, PyObject **held, tp_tensor_t **out) {
  int is_list = PyList_Check(tensors);
  if (!is_list && !PyTuple_Check(tensors)) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *tensor = is_list ? PyList_GetItem(tensors, i) : PyTuple_GetItem(tensors, i);
    if (!tensor || !PyObject_TypeCheck(tensor, launch_tensors)) return i;
    PyObject *handle = *(PyObject **)((char *)tensor + launch_offset);
    out[i] = handle ? launch_pointer(handle, launch_tensor) : NULL;
    if (!out[i]) return i;
    Py_INCREF(tensor); /* another thread may change the list */
    held[i] = tensor;
  }
  return count;
}

/* (graph, static inputs, inputs): the status; None where an argument is not what C takes. */
static PyObject *launch_stage(PyObject *self, PyObject *const *arguments, Py_ssize_t size) {
  enum { FEW = 32 };
  PyObject *few_objects[2 * FEW], **objects = few_objects;
  tp_tensor_t *few[2 * FEW], **handles = few;
  tp_graph_t *graph = launch_pointer(arguments[0], launch_graph);
  Py_ssize_t count = PyObject_Size(arguments[1]), read = 0;
  int known = graph && count >= 0 && PyObject_Size(arguments[2]) == count;
  if (known && count > FEW) {
    objects = PyMem_Malloc(2 * (size_t)count * (sizeof *objects + sizeof *handles));
    handles = (tp_tensor_t **)(objects + 2 * count);
  }
  if (known && objects) read = launch_read(arguments[1], count, objects, handles);
  if (known && objects && read == count)
    read += launch_read(arguments[2], count, objects + count, handles + count);
  known = known && objects && read == 2 * count;
  int32_t status = 0;
  if (known) {
    PyThreadState *state = PyEval_SaveThread();
    status = tp_graph_stage_and_launch(graph, (int32_t)count, handles, handles + count);
    PyEval_RestoreThread(state);
  }
  for (Py_ssize_t i = 0; i < read; i++) Py_DECREF(objects[i]);
  if (objects != few_objects) PyMem_Free(objects);
  PyErr_Clear();
  (void)self, (void)size;
  return known ? PyLong_FromLong(status) : Py_BuildValue("");
}

/* Both functions as a pair, which the caller owns; NULL where it cannot be made. `slot` is the class that has the
 * attribute _impl, a member as __slots__ makes them. */
static void *tp_launch_functions(void *slot, void *tensors, void *graph, void *stream, void *tensor) {
  static PyMethodDef replay = {"replay", (PyCFunction)(void (*)(void))launch_replay, METH_FASTCALL, NULL};
  static PyMethodDef stage = {"stage_and_launch", (PyCFunction)(void (*)(void))launch_stage, METH_FASTCALL, NULL};
  PyGILState_STATE state = PyGILState_Ensure();
  const PyMemberDef *member = PyType_GetSlot(slot, Py_tp_members);
  while (member && member->name && strcmp(member->name, "_impl")) member++;
  launch_tensors = tensors;
  launch_graph = graph;
  launch_stream = stream;
  launch_tensor = tensor;
  launch_probe();
  PyObject *made = NULL;
  if (member && member->name) {
    launch_offset = member->offset;
    made = Py_BuildValue("(NN)", PyCFunction_NewEx(&replay, NULL, NULL), PyCFunction_NewEx(&stage, NULL, NULL));
  }
  PyErr_Clear();
  PyGILState_Release(state);
  return made;
}
