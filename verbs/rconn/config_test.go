package rconn

import (
	"errors"
	"testing"
)

func TestConfigErrorsSayWhichLimit(t *testing.T) {
	for want, c := range map[string]Config{
		"rconn: invalid configuration: Buffers 5000: 1 to 4096": {Buffers: 5000},
		"rconn: invalid configuration: Size 63: 64 to 1048576":  {Size: 63},
		"rconn: invalid configuration: Size -1: 64 to 1048576":  {Size: -1},
		"rconn: invalid configuration: Buffers -1: 1 to 4096":   {Buffers: -1},
	} {
		if err := c.setDefaults(); !errors.Is(err, ErrInvalid) || err.Error() != want {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}
