package cbinding

// TypeCreateKeyval is MPI_Type_create_keyval.
func TypeCreateKeyval(copyFn, deleteFn, keyval, extra uintptr) int {
	return createKeyval("MPI_Type_create_keyval", ofTypeKey, copyFn, deleteFn, keyval, extra)
}

// TypeFreeKeyval is MPI_Type_free_keyval.
func TypeFreeKeyval(keyval uintptr) int { return freeKeyval("MPI_Type_free_keyval", ofTypeKey, keyval) }

// TypeSetAttr is MPI_Type_set_attr.
func TypeSetAttr(datatype Handle, keyval int, value uintptr) int {
	const proc = "MPI_Type_set_attr"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, t.attrs.setAttr(datatype, ofTypeKey, keyval, value))
}

// TypeGetAttr is MPI_Type_get_attr.
func TypeGetAttr(datatype Handle, keyval int, value, flag uintptr) int {
	const proc = "MPI_Type_get_attr"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, t.attrs.getAttr(ofTypeKey, keyval, value, flag, nil))
}

// TypeDeleteAttr is MPI_Type_delete_attr.
func TypeDeleteAttr(datatype Handle, keyval int) int {
	const proc = "MPI_Type_delete_attr"
	t, err := typeOf(datatype)
	if err != nil {
		return fail(proc, err)
	}
	return fail(proc, t.attrs.deleteAttr(datatype, ofTypeKey, keyval))
}
