package handshake

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

func TestHandshake(t *testing.T) {
	key := []byte("key of the job")
	run := func(connKey, accKey []byte, tamper func(step int, msg []byte)) (errC, errA error) {
		c, msg := Connect(Params{Key: connKey, Self: 3, Size: 5}, 1)
		a := Accept(Params{Key: accKey, Self: 1, Size: 5}, nil)
		for step := 1; ; step++ {
			msg = append([]byte(nil), msg...)
			if tamper != nil {
				tamper(step, msg)
			}
			h, errp := a, &errA
			if step%2 == 0 {
				h, errp = c, &errC
			}
			reply, err := h.Step(msg)
			if *errp = err; err != nil {
				return errC, errA
			}
			if step == 2 && (!c.Receiving() || c.Sending()) || step == 3 && (!a.Sending() || a.Peer() != 3) {
				t.Fatalf("state after step %d", step)
			}
			if reply == nil {
				return nil, nil
			}
			msg = reply
		}
	}
	if errC, errA := run(key, key, nil); errC != nil || errA != nil {
		t.Errorf("handshake: %v, %v", errC, errA)
	}
	if errC, _ := run(key, []byte("other"), nil); !errors.Is(errC, mpierr.ErrAuth) {
		t.Errorf("acceptor with another key: %v", errC)
	}
	for step := 1; step <= 4; step++ {
		errC, errA := run(key, key, func(s int, msg []byte) {
			if s == step {
				msg[len(msg)-1] ^= 1
			}
		})
		if !errors.Is(errors.Join(errC, errA), mpierr.ErrAuth) {
			t.Errorf("tampered message %d is taken: %v, %v", step, errC, errA)
		}
	}
	// A connector that cannot prove the key is refused even if it ignores the answer.
	_, hello := Connect(Params{Key: []byte("x"), Self: 3, Size: 5}, 1)
	a := Accept(Params{Key: key, Self: 1, Size: 5}, nil)
	if _, err := a.Step(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Step(append([]byte{stepProve}, make([]byte, macLen)...)); !errors.Is(err, mpierr.ErrAuth) || a.Receiving() {
		t.Errorf("forged proof: %v", err)
	}
}
