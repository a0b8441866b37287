package fortran

import (
	"slices"
	"strings"
	"testing"
)

func formOf(t *testing.T, name string, large, choice bool) form {
	t.Helper()
	for _, f := range forms() {
		if f.Name == name && f.large == large && f.choice == choice {
			return f
		}
	}
	t.Fatalf("no form of %s", name)
	return form{}
}

func TestEntryPoints(t *testing.T) {
	for _, tc := range []struct {
		name          string
		large, choice bool
		want          []string
	}{
		{"MPI_Send", false, false, []string{
			"void pmpi_send_(void *buf, int *count, int *datatype, int *dest, int *tag, int *comm, int *ierror)",
			"PMPI_Send(weft_buffer(buf), *count, TO_C(MPI_Datatype, *datatype), *dest, *tag, TO_C(MPI_Comm, *comm))",
			"WEAK(send)",
		}},
		{"MPI_Send", true, true, []string{
			"void pmpi_send_c_f08ts_(CFI_cdesc_t *buf, MPI_Count *count,",
			"weft_section(&s_buf, buf, *count, *datatype, WEFT_COPY)",
			"PMPI_Send_c(s_buf.buffer, s_buf.count, s_buf.datatype,",
		}},
		{"MPI_Irecv", false, true, []string{"weft_section(&s_buf, buf, *count, *datatype, 0)"}},
		{"MPI_Allreduce", false, true, []string{ // a blocking call may get a copy
			"weft_packed(&s_sendbuf, sendbuf, WEFT_COPY)", "weft_packed(&s_recvbuf, recvbuf, WEFT_COPY | WEFT_BACK)",
		}},
		{"MPI_Iallreduce", false, true, []string{"weft_contiguous(sendbuf)", "weft_contiguous(recvbuf)"}},
		{"MPI_Psend_init", false, true, []string{"weft_contiguous(buf)"}},
		{"MPI_File_read_all_end", false, true, []string{"PMPI_File_read_all_end(TO_C(MPI_File, *fh), c_buf, weft_status(status))"}},
		{"MPI_Waitany", false, false, []string{ // indices count from one
			"PMPI_Waitany(*count, (MPI_Request *)c_array_of_requests.at, &c_index, weft_status(status))",
			"*index = c_index >= 0 ? c_index + 1 : c_index",
			"weft_handles_back(&c_array_of_requests, array_of_requests)",
			"SAME(waitany_f08, waitany)",
		}},
		{"MPI_Testsome", false, false, []string{"weft_count_from_one(array_of_indices, *outcount)"}},
		{"MPI_Cart_shift", false, false, []string{ // a direction does not
			"PMPI_Cart_shift(TO_C(MPI_Comm, *comm), *direction, *disp, rank_source, rank_dest)",
		}},
		{"MPI_Comm_get_name", false, false, []string{
			"int *ierror, size_t comm_name_len)", "weft_pad(comm_name, comm_name_len, c_comm_name)",
		}},
		{"MPI_Info_set", false, false, []string{ // MPI-5.0, 10: blanks on both sides go
			"weft_word(key, key_len)", "weft_word(value, value_len)", "size_t key_len, size_t value_len)",
		}},
		{"MPI_Alltoallw", false, false, []string{
			"weft_in_place(sendbuf) ? NULL : sendtypes, weft_peers(",
		}},
		{"MPI_Neighbor_alltoallw", false, false, []string{
			"weft_handles(&c_sendtypes, weft_in_place(sendbuf) ? NULL : sendtypes, weft_destinations(",
			"weft_handles(&c_recvtypes, recvtypes, weft_sources(",
		}},
		{"MPI_Dist_graph_create", false, false, []string{"weft_weights(weights)"}},
		{"MPI_Wtime", false, false, []string{"double pmpi_wtime_(void) {\n    return PMPI_Wtime();"}},
		{"MPI_Aint_add", false, false, []string{"MPI_Aint pmpi_aint_add_(MPI_Aint *base, MPI_Aint *disp) {"}},
		{"MPI_Op_create", true, false, []string{"PMPI_Op_create_c((MPI_User_function_c *)user_fn, *commute, &c_op)"}},
	} {
		text := formOf(t, tc.name, tc.large, tc.choice).C()
		for _, w := range tc.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", tc.name, w, text)
			}
		}
	}
}

// A buffer may be a section with gaps only where a count and a datatype describe
// all of it, and nothing else.
func TestBuffersThatMayHaveGaps(t *testing.T) {
	for name, want := range map[string][]string{
		"MPI_Send":             {"buf"},
		"MPI_Sendrecv":         {"sendbuf", "recvbuf"},
		"MPI_Bcast":            {"buffer"},
		"MPI_Gather":           {"sendbuf"},
		"MPI_Allgatherv":       {"sendbuf"},
		"MPI_Scatter":          {"recvbuf"},
		"MPI_Scatterv":         {"recvbuf"},
		"MPI_Alltoall":         nil,
		"MPI_Reduce":           nil,
		"MPI_Reduce_scatter":   nil,
		"MPI_Reduce_local":     nil,
		"MPI_Put":              {"origin_addr"},
		"MPI_Get_accumulate":   {"origin_addr", "result_addr"},
		"MPI_Compare_and_swap": nil,
		"MPI_Pack":             {"inbuf"},
		"MPI_Unpack":           {"outbuf"},
		"MPI_File_write_at":    {"buf"},
		"MPI_Win_create":       nil,
		"MPI_Psend_init":       nil,
		"MPI_Get_address":      nil,
	} {
		f := formOf(t, name, false, true)
		var got []string
		params := f.params()
		for i, q := range params {
			if q.Kind != "BUFFER" {
				continue
			}
			if _, _, ok := f.own(params, i); ok {
				got = append(got, q.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
