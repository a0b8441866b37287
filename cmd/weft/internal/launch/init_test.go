package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi"
)

// initAgainRole gives the number that PMI_FD had to a file, and calls Init again.
func initAgainRole(ctx context.Context, _ []string) error {
	fd, err := strconv.Atoi(os.Getenv(pmi.EnvFD))
	if err != nil {
		return err
	}
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weft-init-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var f *os.File
	for i := 0; f == nil || int(f.Fd()) != fd; i++ {
		if f, err = os.Create(fmt.Sprint(dir, "/", i)); err != nil {
			return err
		}
		defer f.Close()
		if int(f.Fd()) > fd {
			return fmt.Errorf("no file got the descriptor %d", fd)
		}
	}
	os.Setenv(pmi.EnvFD, strconv.Itoa(fd)) // a program may put its environment back
	_, err = mpi.Init(ctx)
	_, err2 := mpi.SessionInit(ctx, nil)
	if !errors.Is(err, mpi.ErrFinalized) || !errors.Is(err2, mpi.ErrFinalized) {
		return fmt.Errorf("Init: %w; SessionInit: %w; want ErrFinalized", err, err2)
	}
	if _, err = f.WriteString("data\n"); err != nil {
		return err
	}
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "data\n" {
		return fmt.Errorf("the program's file holds %q, %w", b, err)
	}
	fmt.Println("untouched")
	return nil
}

// A second Init does not take a file of the program for its launcher.
func TestInitAgainLeavesFilesAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("descriptors are not inherited by number on this system")
	}
	if out, _, status := clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "init-again"); status != 0 || out != "untouched\nuntouched\n" {
		t.Errorf("status %d, output %q", status, out)
	}
}
