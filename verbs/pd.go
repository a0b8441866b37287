package verbs

import "github.com/weftstack/weft/ddp"

// PD is a protection domain: regions can only be used through queue pairs of
// the same domain.
type PD struct {
	dev    *Device
	domain ddp.Domain
	refs   refs // regions, windows, queue pairs and shared receive queues
}

// AllocPD makes a protection domain. Of a closed device it is closed.
func (d *Device) AllocPD() *PD {
	return &PD{dev: d, refs: refs{closed: d.use() != nil}}
}

// Close frees the domain. It returns ErrBusy while it has regions, windows,
// queue pairs or shared receive queues.
func (pd *PD) Close() error {
	if err := pd.refs.close("protection domain", "regions, windows, queue pairs and shared receive queues"); err != nil {
		return err
	}
	pd.dev.unuse()
	return nil
}
