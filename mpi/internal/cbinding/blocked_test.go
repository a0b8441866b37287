package cbinding

import "testing"

func TestCallName(t *testing.T) {
	for entry, want := range map[string]string{
		"main.weft_Recv": "MPI_Recv", "main.weft_TypeCreateF90Real": "MPI_Type_create_f90_real",
		"main.weft_TCvarGetInfo": "MPI_T_cvar_get_info", "main.main": "",
		"main.weft_WinFence.WinFence.func1": "MPI_Win_fence", "github.com/weftstack/weft/mpi.Recv": "",
	} {
		if got := callName(entry); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
