package main

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/standard"
)

// TestAllProceduresAreBound checks that the C library has each procedure.
func TestAllProceduresAreBound(t *testing.T) {
	in, err := bound(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range standard.Procedures() {
		if p.InC() && !answeredInC(p) && in[p.Name] == "" {
			t.Errorf("%s: no chapter of cbinding has %s", p.Name, standard.GoName(p.Name))
		}
	}
}

func TestSignatures(t *testing.T) {
	for _, p := range standard.Procedures() {
		want := map[string]string{
			"MPI_Send":        "[uintptr int abi.Handle int int abi.Handle]",
			"MPI_Send_init":   "[uintptr int abi.Handle int int abi.Handle uintptr]",
			"MPI_Get_count":   "[uintptr abi.Handle uintptr bool]",
			"MPI_Op_create":   "[uintptr int uintptr bool]",
			"MPI_Pcontrol":    "[int]",
			"MPI_T_cvar_read": "[abi.Handle uintptr]",
			"MPI_Cancel":      "[uintptr]",
		}[p.Name]
		if want == "" {
			continue
		}
		if got := fmt.Sprint(signature(p)); got != want {
			t.Errorf("%s has parameters %s, want %s", p.Name, got, want)
		}
	}
}

// TestPrototypes checks declarations that the standard spells out in their own way.
func TestPrototypes(t *testing.T) {
	for _, p := range standard.Procedures() {
		for name, want := range map[string]string{
			"MPI_Group_range_incl": "int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)",
			"MPI_Init":             "int MPI_Init(int *argc, char ***argv)",
			"MPI_Info_create_env":  "int MPI_Info_create_env(int argc, char *argv[], MPI_Info *info)",
			"MPI_Buffer_attach":    "int MPI_Buffer_attach(void *buffer, int size)",
			"MPI_Wtime":            "double MPI_Wtime(void)",
			"MPI_Comm_f2c":         "MPI_Comm MPI_Comm_f2c(MPI_Fint comm)",
			"MPI_Status_f2c":       "int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)",
			"MPI_Testall":          "int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[])",
			"MPI_Pcontrol":         "int MPI_Pcontrol(int level, ...)",
		} {
			if got := prototype(p, p.Name, false); p.Name == name && got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}
