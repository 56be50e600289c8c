"""The C source of the cffi module: one module for every variant of the library.

The functions of tensorplay.h are called through a table of pointers that ``tp_table_bind`` fills once, from
the variant that the process chose. So one module, made from one header, serves all three libraries.
"""

from __future__ import annotations

import re
from pathlib import Path

import cffi
from binding_launches import LAUNCHES

HERE = Path(__file__).resolve().parent
MODULE = "tensorplay.cuda._native.lib._tensorplay"

# One line for each function stands where the two FILL comments are.
BIND = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int32_t table_has_emulated;

/* Into text why the library cannot serve; 0 when it can. The version comes first: it explains what else is missing. */
static int table_fill(void *library, const char *path, char *text, size_t room) {
  const char *missing = NULL;
  void *found = dlsym(library, "tp_abi_version");
  int32_t version = found ? ((__typeof__(tp_abi_version))found)() : TP_ABI_VERSION;
  const char *other = "%s has version %d of the C ABI, expected %d: they were not built together";
  if (version != TP_ABI_VERSION) return snprintf(text, room, other, path, (int)version, TP_ABI_VERSION);
  /* FILL required */
  if (missing) return snprintf(text, room, "%s: no %s", path, missing);
  /* FILL optional */
  return 0;
}

/* Fills the table from the library at `path`. NULL on success, else a text. The table belongs to the process,
 * and live objects belong to the library they came from: so it is filled once and never again. */
static const char *tp_table_bind(const char *path) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char bound[4096];
  static _Thread_local char text[8192];
  const char *failure = text;
  pthread_mutex_lock(&lock);
  void *library = bound[0] ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (bound[0]) {
    snprintf(text, sizeof text, "already bound to %s, asked for %s", bound, path);
  } else if (!library) {
    snprintf(text, sizeof text, "%s", dlerror());
  } else if (table_fill(library, path, text, sizeof text)) {
    dlclose(library);
  } else {
    snprintf(bound, sizeof bound, "%s", path);
    failure = NULL;
  }
  pthread_mutex_unlock(&lock);
  return failure;
}

static int32_t tp_table_has_emulated(void) { return table_has_emulated; }
"""

# What C calls with objects of Python: cffi's own functions know neither capsules nor references.
OBJECTS = """
/* Drops a reference that C held, from any thread, with or without the interpreter lock. Once Python has ended, the
 * object stays. */
static void object_release(void *object) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DecRef(object);
  PyGILState_Release(state);
}

static tp_release_t tp_object_release(void) { return object_release; }

/* The end of a DLPack capsule: who takes what it holds gives it another name. */
static void capsule_end(PyObject *capsule) {
  static const char *const names[] = {"dltensor", "dltensor_versioned"};
  for (int32_t is_versioned = 0; is_versioned < 2; is_versioned++)
    if (PyCapsule_IsValid(capsule, names[is_versioned]))
      tp_dlpack_release(PyCapsule_GetPointer(capsule, names[is_versioned]), is_versioned);
}

static uintptr_t tp_capsule_end(void) { return (uintptr_t)capsule_end; }
"""

# Pinned memory as NumPy's arrays. One call from Python makes and fills three objects: through cffi's functions, its
# buffers and np.ndarray it takes four times as long. NumPy's functions have fixed places in a table (its C ABI).
ARRAYS = """
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
"""

# The hook of tp_origin_set_hook. Written in C since no bytecode may run there: a signal's handler would raise its
# exception inside a release function. tensorplay.cuda._origins owns the two tables and explains them.
ORIGINS = """
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
"""

HELPERS = """
const char *tp_table_bind(const char *path);
int32_t tp_table_has_emulated(void);
tp_release_t tp_object_release(void);
uintptr_t tp_capsule_end(void);
tp_origin_hook_t tp_origin_tables(void *numbers, void *stacks, int64_t room);
void *tp_array_maker(void *capsule);
void *tp_launch_functions(void *slot, void *tensors, void *graph, void *stream, void *tensor);
extern "Python" int32_t wait_hook(const char *operation);
"""


def declarations(header: Path) -> str:
    """The part of a header between the cffi markers, without comments and TP_API."""
    text = header.read_text()
    found = re.search(r"/\* cffi begin.*?\*/(.*?)/\* cffi end", text, re.S)
    if not found:
        raise ValueError(f"{header}: no part between 'cffi begin' and 'cffi end'")
    return re.sub(r"\bTP_API\s+", "", re.sub(r"/\*.*?\*/", "", found[1], flags=re.S))


def functions(text: str) -> list[str]:
    """Names of the functions that these declarations declare."""
    return re.findall(r"\b(tp_\w+)\s*\([^;]*?\)\s*;", text)


def _pointer(name: str) -> str:
    """A pointer of the function's own type, which takes the function's name from here on."""
    return f"static __typeof__({name}) *table_{name};\n#define {name} table_{name}\n"


def write_source(target: Path) -> None:
    """Writes the module's C source."""
    public = declarations(HERE / "include" / "tensorplay.h")
    control = declarations(HERE / "emulated" / "include" / "tp_emulated.h")
    required = "\n  ".join(
        f'found = dlsym(library, "{name}"); if (!found && !missing) missing = "{name}"; *(void **)&{name} = found;'
        for name in functions(public)
    )
    optional = "\n  ".join(f'*(void **)&{name} = dlsym(library, "{name}");' for name in functions(control))
    if functions(control):
        optional += f"\n  table_has_emulated = {functions(control)[0]} != NULL;"
    source = '#include "tensorplay.h"\n#include "tp_emulated.h"\n'
    source += "".join(_pointer(name) for name in functions(public) + functions(control))
    source += BIND.replace("/* FILL required */", required).replace("/* FILL optional */", optional)
    source += OBJECTS + ARRAYS + LAUNCHES + ORIGINS
    ffi = cffi.FFI()
    ffi.cdef(public + control + HELPERS)
    ffi.set_source(MODULE, source)
    ffi.emit_c_code(str(target))
