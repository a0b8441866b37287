package op

import "reflect"

// A Table holds operators by code; operators that its elements do not support are nil.
type Table [Codes]Reducer

// Predefined returns the predefined operators for elements of a kind (MPI-4.1, Section 12.3.4).
func Predefined(kind reflect.Kind) (ops Table) {
	switch kind {
	case reflect.Int8:
		ops = integerOps[int8]()
	case reflect.Int16:
		ops = integerOps[int16]()
	case reflect.Int32:
		ops = integerOps[int32]()
	case reflect.Int64:
		ops = integerOps[int64]()
	case reflect.Int:
		ops = integerOps[int]()
	case reflect.Uint8:
		ops = integerOps[uint8]()
	case reflect.Uint16:
		ops = integerOps[uint16]()
	case reflect.Uint32:
		ops = integerOps[uint32]()
	case reflect.Uint64:
		ops = integerOps[uint64]()
	case reflect.Uint:
		ops = integerOps[uint]()
	case reflect.Uintptr:
		ops = integerOps[uintptr]()
	case reflect.Float32:
		ops = orderedOps[float32]()
	case reflect.Float64:
		ops = orderedOps[float64]()
	case reflect.Complex64:
		ops = numberOps[complex64]()
	case reflect.Complex128:
		ops = numberOps[complex128]()
	case reflect.Bool:
		ops = logicalOps[bool](ops)
	}
	ops[CodeReplace], ops[CodeNoOp] = Replace{}, NoOp{}
	return ops
}

func numberOps[T Number]() (ops Table) {
	ops[CodeSum], ops[CodeProd] = Sum[T]{}, Prod[T]{}
	return ops
}

func orderedOps[T Ordered]() Table {
	ops := numberOps[T]()
	ops[CodeMin], ops[CodeMax] = Min[T]{}, Max[T]{}
	return ops
}

func logicalOps[T Logical](ops Table) Table {
	ops[CodeLand], ops[CodeLor], ops[CodeLxor] = Land[T]{}, Lor[T]{}, Lxor[T]{}
	return ops
}

func integerOps[T Integer]() Table {
	ops := logicalOps[T](orderedOps[T]())
	ops[CodeBand], ops[CodeBor], ops[CodeBxor] = Band[T]{}, Bor[T]{}, Bxor[T]{}
	return ops
}
