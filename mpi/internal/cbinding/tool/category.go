package tool

import (
	"strings"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A category is a group of variables. There never are others, so that MPI_T_category_changed tells 0.
type category struct {
	name, desc string
	cvars      []int
	pvars      []int
	categories []int
}

// categories lists them: the first holds the others.
var categories = func() []*category {
	all := &category{name: "weft", desc: "all variables of the library", categories: []int{1, 2, 3, 4, 5}}
	messages := &category{name: "weft_p2p", desc: "point-to-point messages"}
	collectives := &category{name: "weft_coll", desc: "collective operations"}
	memory := &category{name: "weft_rma", desc: "windows, files and memory of other ranks"}
	transport := &category{name: "weft_transport", desc: "what carries messages, and how ranks wait for it"}
	process := &category{name: "weft_process", desc: "the library in the process"}
	for i, v := range cvars {
		c := transport
		switch v.name {
		case "WEFT_EAGER", "WEFT_RENDEZVOUS", "WEFT_STREAMS", "WEFT_UNEXPECTED":
			c = messages
		case "WEFT_COLL", tuningCvar:
			c = collectives
		}
		c.cvars = append(c.cvars, i)
	}
	for i, v := range pvars {
		c := messages
		switch name := strings.TrimSuffix(v.name, "_bytes"); name {
		case "weft_collective":
			c = collectives
		case "weft_one_sided", "weft_writes", "weft_reads", "weft_atomics":
			c = memory
		case "weft_internal", "weft_relayed", "weft_spin_cost", "weft_park_cost":
			c = transport
		case "weft_allocations":
			c = process
		}
		c.pvars = append(c.pvars, i)
	}
	return []*category{all, messages, collectives, memory, transport, process}
}()

// TCategoryGetNum is MPI_T_category_get_num.
func TCategoryGetNum(numCat uintptr) int { return toolCount(numCat, len(categories)) }

// TCategoryGetIndex is MPI_T_category_get_index.
func TCategoryGetIndex(name, catIndex uintptr) int {
	return indexOf(name, catIndex, len(categories), func(i int) (string, bool) { return categories[i].name, true })
}

// withCategory calls f with the category of an index.
func withCategory(catIndex int, f func(*category) int) int {
	if code := enterTool(); code != 0 {
		return code
	}
	defer leaveTool()
	if catIndex < 0 || catIndex >= len(categories) {
		return abi.TErrInvalidIndex
	}
	return f(categories[catIndex])
}

// TCategoryGetInfo is MPI_T_category_get_info.
func TCategoryGetInfo(
	catIndex int, name, nameLen, desc, descLen, numCvars, numPvars, numCategories uintptr,
) int {
	return withCategory(catIndex, func(c *category) int {
		setToolStr(name, nameLen, c.name)
		setToolStr(desc, descLen, c.desc)
		setToolInt(numCvars, len(c.cvars))
		setToolInt(numPvars, len(c.pvars))
		setToolInt(numCategories, len(c.categories))
		return 0
	})
}

// TCategoryGetNumEvents is MPI_T_category_get_num_events.
func TCategoryGetNumEvents(catIndex int, numEvents uintptr) int {
	return withCategory(catIndex, func(*category) int { return needInt(numEvents, 0) })
}

// setIndices stores the first n indices of a list at p.
func setIndices(p uintptr, n int, list []int) int {
	n = min(n, len(list))
	if n < 0 || p == 0 && n > 0 {
		return abi.TErrInvalid
	}
	for i, x := range list[:n] {
		cbinding.StoreInt(p+uintptr(4*i), x, false)
	}
	return 0
}

// TCategoryGetCvars is MPI_T_category_get_cvars.
func TCategoryGetCvars(catIndex, n int, indices uintptr) int {
	return withCategory(catIndex, func(c *category) int { return setIndices(indices, n, c.cvars) })
}

// TCategoryGetPvars is MPI_T_category_get_pvars.
func TCategoryGetPvars(catIndex, n int, indices uintptr) int {
	return withCategory(catIndex, func(c *category) int { return setIndices(indices, n, c.pvars) })
}

// TCategoryGetEvents is MPI_T_category_get_events.
func TCategoryGetEvents(catIndex, n int, indices uintptr) int {
	return withCategory(catIndex, func(*category) int { return setIndices(indices, n, nil) })
}

// TCategoryGetCategories is MPI_T_category_get_categories.
func TCategoryGetCategories(catIndex, n int, indices uintptr) int {
	return withCategory(catIndex, func(c *category) int { return setIndices(indices, n, c.categories) })
}

// TCategoryChanged is MPI_T_category_changed.
func TCategoryChanged(updateNumber uintptr) int { return toolCount(updateNumber, 0) }
