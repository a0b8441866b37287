package core

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
)

// notCompared are the fields in which two associations to which the same has happened may
// differ, one by a fast path and one by the slow path, with the reason for each.
var notCompared = map[string]string{
	"situation.slow":          "without slowConfig, which one of the two has on purpose: see diffState",
	"Config.slowPath":         "one of the two has it on purpose",
	"tx.Scoreboard.noBulk":    "likewise",
	"tx.Scoreboard.recs":      "a ring in which only the records of outstanding TSNs count: see records",
	"reasm.fragState.block":   "the memory of a payload; data, which refers to it, is compared",
	"reasm.frag.short":        "likewise, for a short one",
	"reasm.fragState.slot":    "the key of a fragment in a table of loose ones, from when it was in one",
	"inbound.deferSack":       "says something of the packet in hand, between packets of the last one",
	"inbound.buf":             "likewise",
	"inbound.control":         "likewise",
	"inbound.ecn":             "likewise",
	"reasm.pin.buf":           "a receive buffer of the driver, which data refers to",
	"tx.roundRobin.last":      "where the next stream that has something to send is put in; a small message that leaves at once is not",
	"tx.roundRobin.ring":      "grows when a stream has something to send; the links in it are left from when it last had",
	"tx.strictPriority.turns": "numbers the turns of streams in their order; a small message that leaves at once takes none",
	"tx.schedHeap.info":       "keys of streams from when they last had something to send",
}

// stateDiff finds the first difference between two associations. It walks all that can be
// reached from them, so that a field that is added later is compared, too.
type stateDiff struct {
	seen map[[2]unsafe.Pointer]bool
	used map[string]bool // exclusions that were met
}

// diffState returns where the state of x and y differs and how, or "".
func diffState(x, y *Assoc) string {
	if a, b := x.slow&^slowConfig, y.slow&^slowConfig; a != b {
		return fmt.Sprintf("reasons for the slow path: %014b and %014b", a, b)
	}
	x.timers.Next() // finds the earliest timer if that is not known
	y.timers.Next()
	d := &stateDiff{seen: map[[2]unsafe.Pointer]bool{}}
	s := d.walk(reflect.ValueOf(x), reflect.ValueOf(y))
	return s[max(len(s)-200, 0):] // the way may lead along a list
}

// walk compares two values. What it returns begins with the way from them to where they
// differ.
func (d *stateDiff) walk(x, y reflect.Value) string {
	if !x.IsValid() || !y.IsValid() { // in an interface that is nil
		if x.IsValid() != y.IsValid() {
			return ": one is nil"
		}
		return ""
	}
	if x.Type() != y.Type() {
		return fmt.Sprintf(": %v and %v", x.Type(), y.Type())
	}
	switch x.Kind() {
	case reflect.Pointer:
		if x.IsNil() || y.IsNil() {
			return nils(x, y)
		}
		pair := [2]unsafe.Pointer{x.UnsafePointer(), y.UnsafePointer()}
		if d.seen[pair] {
			return ""
		}
		d.seen[pair] = true
		return d.walk(x.Elem(), y.Elem())
	case reflect.Interface:
		return d.walk(x.Elem(), y.Elem())
	case reflect.Struct:
		return d.fields(x, y)
	case reflect.Slice, reflect.Array:
		return d.elements(x, y)
	case reflect.Map:
		if x.Len() != y.Len() {
			return fmt.Sprintf(": %d and %d keys", x.Len(), y.Len())
		}
		for _, k := range x.MapKeys() {
			if s := d.walk(x.MapIndex(k), y.MapIndex(k)); s != "" {
				return fmt.Sprintf("[%v]%s", k, s)
			}
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return nils(x, y)
	default:
		if !x.Equal(y) {
			return fmt.Sprintf(": %v and %v", x, y)
		}
	}
	return ""
}

func nils(x, y reflect.Value) string {
	if x.IsNil() != y.IsNil() {
		return fmt.Sprintf(": nil %v and %v", x.IsNil(), y.IsNil())
	}
	return ""
}

func (d *stateDiff) elements(x, y reflect.Value) string {
	if x.Len() != y.Len() {
		return fmt.Sprintf(": %d and %d elements", x.Len(), y.Len())
	}
	if x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Uint8 {
		if !bytes.Equal(x.Bytes(), y.Bytes()) {
			return fmt.Sprintf(": %d bytes differ", x.Len())
		}
		return ""
	}
	for i := range x.Len() {
		if s := d.walk(x.Index(i), y.Index(i)); s != "" {
			return fmt.Sprintf("[%d]%s", i, s)
		}
	}
	return ""
}

func (d *stateDiff) fields(x, y reflect.Value) string {
	t := x.Type()
	if t == reflect.TypeFor[tx.Scoreboard]() {
		if s := d.records(x, y); s != "" {
			return s
		}
	}
	name := strings.TrimPrefix(t.String(), "core.")
	for i := range t.NumField() {
		f := t.Field(i).Name
		if _, ok := notCompared[name+"."+f]; ok {
			if d.used != nil {
				d.used[name+"."+f] = true
			}
			continue
		}
		if s := d.walk(x.Field(i), y.Field(i)); s != "" {
			return "." + f + s
		}
	}
	return ""
}

// records compares the records of outstanding TSNs; what else is in the ring is old.
func (d *stateDiff) records(x, y reflect.Value) string {
	a, b := (*tx.Scoreboard)(x.Addr().UnsafePointer()), (*tx.Scoreboard)(y.Addr().UnsafePointer())
	if a.CumTSN() != b.CumTSN() || a.NextTSN() != b.NextTSN() {
		return fmt.Sprintf(": TSNs above %d to %d and %d to %d", a.CumTSN(), a.NextTSN(), b.CumTSN(), b.NextTSN())
	}
	for tsn := a.CumTSN() + 1; tsn != a.NextTSN(); tsn++ {
		if s := d.walk(outstanding(a, tsn), outstanding(b, tsn)); s != "" {
			return fmt.Sprintf(".rec(%d)%s", tsn, s)
		}
	}
	return ""
}

// Every exclusion is of a field that there is, and that is met in a comparison.
func TestExclusionsFromComparisonsExist(t *testing.T) {
	met := map[string]bool{}
	for k := range tx.Scheduler(6) {
		p := newPair(t, 1, &Config{Scheduler: k})
		p.connect()
		if err := p.a.assoc.Send(p.now, &tx.Message{Body: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
		buf := new(slab.Pool).Get()
		pkt, tx, _ := p.a.assoc.PollTransmit(p.now, buf.B[:0], 1)
		p.z.assoc.HandlePacket(p.now, &Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, Data: pkt, Buf: buf})
		d := &stateDiff{seen: map[[2]unsafe.Pointer]bool{}, used: met}
		if s := d.walk(reflect.ValueOf(p.z.assoc), reflect.ValueOf(p.a.assoc)); s == "" {
			t.Error("two ends of an association are said to be alike")
		}
		d = &stateDiff{seen: map[[2]unsafe.Pointer]bool{}, used: met}
		if s := d.walk(reflect.ValueOf(p.z.assoc), reflect.ValueOf(p.z.assoc)); s != "" {
			t.Errorf("an association differs from itself: %s", s)
		}
	}
	for name := range notCompared {
		if !met[name] {
			t.Errorf("%s is never met", name)
		}
	}
}
