package tool

import "github.com/weftstack/weft/mpi/internal/abi"

// A toolEnum is an MPI_T_enum: names of the values 0, 1, … of a variable. Its handle is a number that
// never changes.
type toolEnum struct {
	handle abi.Handle
	name   string
	items  []string
}

var (
	transportEnum  = &toolEnum{1, "transport", []string{"hybrid", "sctp", "tcp"}}
	rendezvousEnum = &toolEnum{2, "rendezvous", []string{"message", "write", "read"}}
	switchEnum     = &toolEnum{3, "switch", []string{"off", "on"}}
)

var toolEnums = []*toolEnum{transportEnum, rendezvousEnum, switchEnum}

// enumOf returns the enumeration of a handle; nil if there is none.
func enumOf(h abi.Handle) *toolEnum {
	for _, e := range toolEnums {
		if e.handle == h {
			return e
		}
	}
	return nil
}

// TEnumGetInfo is MPI_T_enum_get_info.
func TEnumGetInfo(enumtype abi.Handle, num, name, nameLen uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	e := enumOf(enumtype)
	if e == nil {
		return abi.TErrInvalidHandle
	}
	setToolInt(num, len(e.items))
	setToolStr(name, nameLen, e.name)
	return 0
}

// TEnumGetItem is MPI_T_enum_get_item.
func TEnumGetItem(enumtype abi.Handle, index int, value, name, nameLen uintptr) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	e := enumOf(enumtype)
	if e == nil {
		return abi.TErrInvalidHandle
	}
	if index < 0 || index >= len(e.items) {
		return abi.TErrInvalidItem
	}
	setToolInt(value, index)
	setToolStr(name, nameLen, e.items[index])
	return 0
}
