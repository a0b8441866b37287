package datatype

import (
	"fmt"
	"sync"
)

// A Group is a group of predefined datatypes that the same operators take (MPI-4.1, Section
// 6.9.2).
type Group uint8

// Groups of predefined datatypes.
const (
	GroupOther          Group = iota // characters, MPI_PACKED: no operators
	GroupCInteger                    // C integer
	GroupFortranInteger              // Fortran integer
	GroupFloat                       // floating point
	GroupLogical                     // logical
	GroupComplex                     // complex
	GroupByte                        // byte
	GroupMultiLanguage               // addresses, offsets, counts
	GroupPair                        // a value and an index: MPI_MINLOC and MPI_MAXLOC
)

// A Named is a predefined datatype of C or Fortran, laid out as compilers for Linux on x86-64 and
// arm64 lay it out, but for long double, which is that of x86-64.
type Named struct {
	Name  string // MPI_INT
	ABI   int    // its handle in the MPI ABI (MPI-5.0, Appendix A)
	Group Group
	Type  *Type

	// Format is that of numbers, or of both parts of complex numbers, that Go has no type for.
	Format *FloatFormat
	// Value and Index are the parts of a pair, Index placed IndexAt bytes behind Value.
	Value, Index *Named
	IndexAt      int

	class sigClass
	size  int // bytes; of a pair without padding
	ext   int // bytes in external32
}

// Class tells numbers apart that are as long: "int", "uint", "float", "complex" or "bool", as Go
// calls them, or else what it is.
func (n *Named) Class() string { return sigClassNames[n.class] }

// Size returns the bytes of data.
func (n *Named) Size() int { return n.size }

// namedTable lists the predefined datatypes. The length in external32 is that of MPI-4.1, Section
// 14.5.2; pairs have that of their parts.
var namedTable = []Named{
	{Name: "MPI_AINT", ABI: 513, Group: GroupMultiLanguage, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_COUNT", ABI: 514, Group: GroupMultiLanguage, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_OFFSET", ABI: 515, Group: GroupMultiLanguage, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_PACKED", ABI: 519, class: sigUint, size: 1, ext: 1},
	{Name: "MPI_SHORT", ABI: 520, Group: GroupCInteger, class: sigInt, size: 2, ext: 2},
	{Name: "MPI_INT", ABI: 521, Group: GroupCInteger, class: sigInt, size: 4, ext: 4},
	{Name: "MPI_LONG", ABI: 522, Group: GroupCInteger, class: sigInt, size: 8, ext: 4},
	{Name: "MPI_LONG_LONG", ABI: 523, Group: GroupCInteger, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_UNSIGNED_SHORT", ABI: 524, Group: GroupCInteger, class: sigUint, size: 2, ext: 2},
	{Name: "MPI_UNSIGNED", ABI: 525, Group: GroupCInteger, class: sigUint, size: 4, ext: 4},
	{Name: "MPI_UNSIGNED_LONG", ABI: 526, Group: GroupCInteger, class: sigUint, size: 8, ext: 4},
	{Name: "MPI_UNSIGNED_LONG_LONG", ABI: 527, Group: GroupCInteger, class: sigUint, size: 8, ext: 8},
	{Name: "MPI_FLOAT", ABI: 528, Group: GroupFloat, class: sigFloat, size: 4, ext: 4},
	{Name: "MPI_C_FLOAT_COMPLEX", ABI: 530, Group: GroupComplex, class: sigComplex, size: 8, ext: 8},
	{Name: "MPI_CXX_FLOAT_COMPLEX", ABI: 531, Group: GroupComplex, class: sigComplex, size: 8, ext: 8},
	{Name: "MPI_DOUBLE", ABI: 532, Group: GroupFloat, class: sigFloat, size: 8, ext: 8},
	{Name: "MPI_C_DOUBLE_COMPLEX", ABI: 534, Group: GroupComplex, class: sigComplex, size: 16, ext: 16},
	{Name: "MPI_CXX_DOUBLE_COMPLEX", ABI: 535, Group: GroupComplex, class: sigComplex, size: 16, ext: 16},
	{Name: "MPI_LOGICAL", ABI: 536, Group: GroupLogical, class: sigLogical, size: 4, ext: 4},
	{Name: "MPI_INTEGER", ABI: 537, Group: GroupFortranInteger, class: sigInt, size: 4, ext: 4},
	{Name: "MPI_REAL", ABI: 538, Group: GroupFloat, class: sigFloat, size: 4, ext: 4},
	{Name: "MPI_COMPLEX", ABI: 539, Group: GroupComplex, class: sigComplex, size: 8, ext: 8},
	{Name: "MPI_DOUBLE_PRECISION", ABI: 540, Group: GroupFloat, class: sigFloat, size: 8, ext: 8},
	{Name: "MPI_DOUBLE_COMPLEX", ABI: 541, Group: GroupComplex, class: sigComplex, size: 16, ext: 16},
	{Name: "MPI_CHARACTER", ABI: 542, class: sigChar, size: 1, ext: 1},
	{Name: "MPI_LONG_DOUBLE", ABI: 544, Group: GroupFloat, class: sigExtended, size: 16, ext: 16, Format: Extended},
	{Name: "MPI_C_LONG_DOUBLE_COMPLEX", ABI: 548, Group: GroupComplex, class: sigExtendedComplex, size: 32, ext: 32,
		Format: Extended},
	{Name: "MPI_CXX_LONG_DOUBLE_COMPLEX", ABI: 549, Group: GroupComplex, class: sigExtendedComplex, size: 32, ext: 32,
		Format: Extended},
	{Name: "MPI_C_BOOL", ABI: 568, Group: GroupLogical, class: sigBool, size: 1, ext: 1},
	{Name: "MPI_CXX_BOOL", ABI: 569, Group: GroupLogical, class: sigBool, size: 1, ext: 1},
	{Name: "MPI_WCHAR", ABI: 572, class: sigChar, size: 4, ext: 2},
	{Name: "MPI_INT8_T", ABI: 576, Group: GroupCInteger, class: sigInt, size: 1, ext: 1},
	{Name: "MPI_UINT8_T", ABI: 577, Group: GroupCInteger, class: sigUint, size: 1, ext: 1},
	{Name: "MPI_CHAR", ABI: 579, class: sigChar, size: 1, ext: 1},
	{Name: "MPI_SIGNED_CHAR", ABI: 580, Group: GroupCInteger, class: sigInt, size: 1, ext: 1},
	{Name: "MPI_UNSIGNED_CHAR", ABI: 581, Group: GroupCInteger, class: sigUint, size: 1, ext: 1},
	{Name: "MPI_BYTE", ABI: 583, Group: GroupByte, class: sigUint, size: 1, ext: 1},
	{Name: "MPI_INT16_T", ABI: 584, Group: GroupCInteger, class: sigInt, size: 2, ext: 2},
	{Name: "MPI_UINT16_T", ABI: 585, Group: GroupCInteger, class: sigUint, size: 2, ext: 2},
	{Name: "MPI_INT32_T", ABI: 592, Group: GroupCInteger, class: sigInt, size: 4, ext: 4},
	{Name: "MPI_UINT32_T", ABI: 593, Group: GroupCInteger, class: sigUint, size: 4, ext: 4},
	{Name: "MPI_INT64_T", ABI: 600, Group: GroupCInteger, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_UINT64_T", ABI: 601, Group: GroupCInteger, class: sigUint, size: 8, ext: 8},
	{Name: "MPI_LOGICAL1", ABI: 704, Group: GroupLogical, class: sigLogical, size: 1, ext: 1},
	{Name: "MPI_INTEGER1", ABI: 705, Group: GroupFortranInteger, class: sigInt, size: 1, ext: 1},
	{Name: "MPI_LOGICAL2", ABI: 712, Group: GroupLogical, class: sigLogical, size: 2, ext: 2},
	{Name: "MPI_INTEGER2", ABI: 713, Group: GroupFortranInteger, class: sigInt, size: 2, ext: 2},
	{Name: "MPI_REAL2", ABI: 714, Group: GroupFloat, class: sigFloat, size: 2, ext: 2, Format: Half},
	{Name: "MPI_LOGICAL4", ABI: 720, Group: GroupLogical, class: sigLogical, size: 4, ext: 4},
	{Name: "MPI_INTEGER4", ABI: 721, Group: GroupFortranInteger, class: sigInt, size: 4, ext: 4},
	{Name: "MPI_REAL4", ABI: 722, Group: GroupFloat, class: sigFloat, size: 4, ext: 4},
	{Name: "MPI_COMPLEX4", ABI: 723, Group: GroupComplex, class: sigComplex, size: 4, ext: 4, Format: Half},
	{Name: "MPI_LOGICAL8", ABI: 728, Group: GroupLogical, class: sigLogical, size: 8, ext: 8},
	{Name: "MPI_INTEGER8", ABI: 729, Group: GroupFortranInteger, class: sigInt, size: 8, ext: 8},
	{Name: "MPI_REAL8", ABI: 730, Group: GroupFloat, class: sigFloat, size: 8, ext: 8},
	{Name: "MPI_COMPLEX8", ABI: 731, Group: GroupComplex, class: sigComplex, size: 8, ext: 8},
	{Name: "MPI_LOGICAL16", ABI: 736, Group: GroupLogical, class: sigLogical, size: 16, ext: 16},
	{Name: "MPI_INTEGER16", ABI: 737, Group: GroupFortranInteger, class: sigInt, size: 16, ext: 16},
	{Name: "MPI_REAL16", ABI: 738, Group: GroupFloat, class: sigFloat, size: 16, ext: 16, Format: Quad},
	{Name: "MPI_COMPLEX16", ABI: 739, Group: GroupComplex, class: sigComplex, size: 16, ext: 16},
	{Name: "MPI_COMPLEX32", ABI: 747, Group: GroupComplex, class: sigComplex, size: 32, ext: 32, Format: Quad},
}

// namedPairs lists the pairs of MPI-4.1, Section 6.9.4, by their parts.
var namedPairs = []struct {
	name         string
	abi          int
	value, index string
}{
	{"MPI_FLOAT_INT", 552, "MPI_FLOAT", "MPI_INT"},
	{"MPI_DOUBLE_INT", 553, "MPI_DOUBLE", "MPI_INT"},
	{"MPI_LONG_INT", 554, "MPI_LONG", "MPI_INT"},
	{"MPI_2INT", 555, "MPI_INT", "MPI_INT"},
	{"MPI_SHORT_INT", 556, "MPI_SHORT", "MPI_INT"},
	{"MPI_LONG_DOUBLE_INT", 557, "MPI_LONG_DOUBLE", "MPI_INT"},
	{"MPI_2REAL", 560, "MPI_REAL", "MPI_REAL"},
	{"MPI_2DOUBLE_PRECISION", 561, "MPI_DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION"},
	{"MPI_2INTEGER", 562, "MPI_INTEGER", "MPI_INTEGER"},
}

// Predefined returns the predefined datatypes of C and Fortran. Programs that use none pay nothing.
var Predefined = sync.OnceValue(func() []*Named {
	byName := make(map[string]*Named)
	var all []*Named
	for i := range namedTable {
		n := &namedTable[i]
		n.define()
		byName[n.Name] = n
		all = append(all, n)
	}
	for _, p := range namedPairs {
		n := &Named{Name: p.name, ABI: p.abi, Group: GroupPair, Value: byName[p.value], Index: byName[p.index]}
		n.definePair()
		all = append(all, n)
	}
	return all
})

// Named returns the predefined datatype that t is, or is a duplicate of; or nil.
func (t *Type) Named() *Named { return t.named }

// layouts holds the layouts that no Go type has, so that datatypes of the same layout match.
var layouts = make(map[Named]*Layout)

// layout returns the layout of one value.
func (n *Named) layout() *Layout {
	goType := basicTypes[n.class.of(n.size)]
	if goType != nil && n.ext == n.size {
		return LayoutOf(goType)
	}
	key := Named{class: n.class, size: n.size, ext: n.ext}
	if l := layouts[key]; l != nil {
		return l
	}
	l := &Layout{Name: n.class.of(n.size).String(), Size: n.size, Ext: n.ext}
	parts := 1
	if n.Group == GroupComplex {
		parts = 2
	}
	one := n.size / parts
	for i := range parts {
		w := elemWord{off: i * one, n: one, ext: n.ext / parts}
		switch {
		case n.Format == Extended:
			w.conv = convertExtended
		case w.ext < w.n && n.class == sigInt:
			w.conv = convertSigned
		case w.ext < w.n:
			w.conv = convertUnsigned
		}
		l.words = append(l.words, w)
	}
	layouts[key] = l
	return l
}

// align returns the alignment of one value.
func (n *Named) align() int {
	if n.Group == GroupComplex {
		return n.size / 2
	}
	return n.size
}

// define makes the datatype of one value.
func (n *Named) define() {
	sig := n.class.of(n.size)
	if sig == sigByte {
		sig = SigAny
	}
	n.Type = &Type{root: run(0, n.size), size: n.size, ub: n.size, tub: n.size, align: n.align(),
		sig: basicSignature(n.layout()), values: sig, named: n}
	n.Type.made = &Contents{Combiner: CombinerNamed, Named: n.Type}
	n.Type.base = n.Type
}

// definePair makes the datatype of a pair as the C struct of its parts.
func (n *Named) definePair() {
	v, i := n.Value, n.Index
	n.IndexAt = (v.size + i.size - 1) / i.size * i.size
	t, err := Struct([]int{1, 1}, []int{0, n.IndexAt}, []*Type{v.Type, i.Type})
	if err != nil {
		panic(fmt.Sprintf("mpi: %s: %v", n.Name, err)) // the table is wrong
	}
	n.size, n.ext = t.size, v.ext+i.ext
	if t.values == SigAny {
		t.values = severalSig([]Sig{v.Type.values, i.Type.values}, n.Name)
	}
	t.named = n
	t.made = &Contents{Combiner: CombinerNamed, Named: t}
	t.base = t
	n.Type = t
}
