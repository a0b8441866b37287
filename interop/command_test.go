package interop

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// pipeTime is how long a wait for a program goes on after its end while a child of it keeps its
// output open.
const pipeTime = time.Minute

// command is exec.Command for a program that is killed at the deadline of the test.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	return commandIn(within(t), name, args...)
}

// commandIn is command for a program that is killed when ctx is done.
func commandIn(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = pipeTime
	return cmd
}
