package testenv

import (
	"flag"
	"testing"
)

func TestSlow(t *testing.T) {
	run := flag.Lookup("test.run")
	was := run.Value.String()
	defer run.Value.Set(was)
	for _, c := range []struct {
		env, run string
		skips    bool
	}{{"", "", true}, {"", "TestSiw", false}, {"run", "", false}, {"require", "", false}} {
		t.Run("", func(t *testing.T) {
			t.Setenv(EnvRequire, c.env)
			if err := run.Value.Set(c.run); err != nil {
				t.Fatal(err)
			}
			skipped := true
			t.Run("", func(t *testing.T) {
				Slow(t, "boots a guest")
				skipped = false
			})
			if skipped != c.skips {
				t.Errorf("%s=%q -run %q: skipped %v", EnvRequire, c.env, c.run, skipped)
			}
		})
	}
}
