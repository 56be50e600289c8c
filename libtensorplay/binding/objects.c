/* What C calls with objects of Python: cffi's own functions know neither capsules nor references. */

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
