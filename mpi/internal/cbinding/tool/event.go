package tool

import "github.com/weftstack/weft/mpi/internal/abi"

// The library has no event types and no sources of events, which the standard allows (MPI-5.0, Section
// 15.3.8): tools get all calls by the profiling interface. So no index, and no handle, is one.

// noEvent returns the error code of a call that needs an event, a registration or a source.
func noEvent(code int) int {
	if c := enterTool(); c != 0 {
		return c
	}
	leaveTool()
	return code
}

// TEventGetNum is MPI_T_event_get_num.
func TEventGetNum(numEvents uintptr) int { return toolCount(numEvents, 0) }

// TEventGetIndex is MPI_T_event_get_index.
func TEventGetIndex(name, eventIndex uintptr) int {
	return indexOf(name, eventIndex, 0, nil)
}

// TSourceGetNum is MPI_T_source_get_num.
func TSourceGetNum(numSources uintptr) int { return toolCount(numSources, 0) }

// TEventCallbackGetInfo is MPI_T_event_callback_get_info.
func TEventCallbackGetInfo(eventRegistration abi.Handle, cbSafety int, infoUsed uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventCallbackSetInfo is MPI_T_event_callback_set_info.
func TEventCallbackSetInfo(eventRegistration abi.Handle, cbSafety int, info abi.Handle) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventCopy is MPI_T_event_copy.
func TEventCopy(eventInstance abi.Handle, buffer uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventGetInfo is MPI_T_event_get_info.
func TEventGetInfo(
	eventIndex int, name, nameLen, verbosity, arrayOfDatatypes, arrayOfDisplacements, numElements, enumtype, info,
	desc, descLen, bind uintptr,
) int {
	return noEvent(abi.TErrInvalidIndex)
}

// TEventGetSource is MPI_T_event_get_source.
func TEventGetSource(eventInstance abi.Handle, sourceIndex uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventGetTimestamp is MPI_T_event_get_timestamp.
func TEventGetTimestamp(eventInstance abi.Handle, eventTimestamp uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventHandleAlloc is MPI_T_event_handle_alloc.
func TEventHandleAlloc(eventIndex int, objHandle uintptr, info abi.Handle, eventRegistration uintptr) int {
	return noEvent(abi.TErrInvalidIndex)
}

// TEventHandleFree is MPI_T_event_handle_free.
func TEventHandleFree(eventRegistration abi.Handle, userData, freeCbFunction uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventHandleGetInfo is MPI_T_event_handle_get_info.
func TEventHandleGetInfo(eventRegistration abi.Handle, infoUsed uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventHandleSetInfo is MPI_T_event_handle_set_info.
func TEventHandleSetInfo(eventRegistration, info abi.Handle) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventRead is MPI_T_event_read.
func TEventRead(eventInstance abi.Handle, elementIndex int, buffer uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventRegisterCallback is MPI_T_event_register_callback.
func TEventRegisterCallback(
	eventRegistration abi.Handle, cbSafety int, info abi.Handle, userData, eventCbFunction uintptr,
) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TEventSetDroppedHandler is MPI_T_event_set_dropped_handler.
func TEventSetDroppedHandler(eventRegistration abi.Handle, droppedCbFunction uintptr) int {
	return noEvent(abi.TErrInvalidHandle)
}

// TSourceGetInfo is MPI_T_source_get_info.
func TSourceGetInfo(
	sourceIndex int, name, nameLen, desc, descLen, ordering, ticksPerSecond, maxTicks, info uintptr,
) int {
	return noEvent(abi.TErrInvalidIndex)
}

// TSourceGetTimestamp is MPI_T_source_get_timestamp.
func TSourceGetTimestamp(sourceIndex int, timestamp uintptr) int {
	return noEvent(abi.TErrInvalidIndex)
}
