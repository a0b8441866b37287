package main

import "strings"

// chapters are what the C library is divided by: a file in C and one in Go for each.
var chapters = []string{"p2p", "coll", "comm", "types", "win", "file", "tools", "env", "convert"}

// chapterOf returns the chapter of a procedure.
func chapterOf(name string) string {
	n := strings.TrimPrefix(name, "MPI_")
	for _, r := range chapterRules {
		for _, part := range r.parts {
			if r.match(n, part) {
				return r.chapter
			}
		}
	}
	return "env"
}

// chapterRules are tried in order.
var chapterRules = []struct {
	chapter string
	match   func(name, part string) bool
	parts   []string
}{
	{"convert", strings.HasSuffix, []string{"_c2f", "_f2c", "_toint", "_fromint", "_f2f08", "_f082f", "_c2f08", "_f082c"}},
	{"tools", strings.HasPrefix, []string{"T_"}},
	{"file", strings.HasPrefix, []string{"File_", "Register_datarep"}},
	{"coll", strings.HasPrefix, []string{"Neighbor_", "Ineighbor_", "Allgather", "Allreduce", "Alltoall", "Barrier", "Bcast", "Exscan",
		"Gather", "Reduce", "Scan", "Scatter", "Iallgather", "Iallreduce", "Ialltoall", "Ibarrier", "Ibcast", "Iexscan", "Igather",
		"Ireduce", "Iscan", "Iscatter", "Op_"}},
	{"win", strings.HasPrefix, []string{"Win_", "Put", "Get_accumulate", "Accumulate", "Rput", "Rget", "Raccumulate", "Fetch_and_op",
		"Compare_and_swap"}},
	{"win", func(name, part string) bool { return name == part }, []string{"Get"}},
	{"types", strings.HasPrefix, []string{"Type_", "Pack", "Unpack", "Get_address", "Aint_"}},
	{"p2p", strings.HasSuffix, []string{"send", "recv", "send_init", "recv_init", "probe", "sendrecv_replace"}},
	{"p2p", strings.HasPrefix, []string{"Wait", "Test", "Request_", "Start", "Status_", "Pready", "Parrived", "Cancel", "Grequest",
		"Get_count", "Get_elements", "Buffer_", "Isendrecv", "Comm_attach_buffer", "Comm_detach_buffer", "Comm_flush_buffer",
		"Comm_iflush_buffer", "Session_attach_buffer", "Session_detach_buffer", "Session_flush_buffer", "Session_iflush_buffer"}},
	{"comm", strings.HasPrefix, []string{"Comm_", "Group_", "Intercomm_", "Cart_", "Cartdim", "Graph", "Dist_graph_", "Topo_test",
		"Dims_create", "Attr_", "Keyval_"}},
}
