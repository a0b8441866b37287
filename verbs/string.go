package verbs

import "fmt"

// The String methods of this package take no lock.

// String names the device by its address.
func (d *Device) String() string {
	if d.ep == nil && d.relay == nil {
		return "verbs.Device without a transport"
	}
	return "verbs.Device " + d.where()
}

// where returns the address over SCTP, or the process and the service.
func (d *Device) where() string {
	if d.ep == nil && d.relay != nil {
		process, service := d.relay.Addr()
		return fmt.Sprintf("%v service %d", process, service)
	}
	return d.Addr().String()
}

// String names the domain by its device.
func (pd *PD) String() string { return fmt.Sprintf("verbs.PD of %v", pd.dev) }

// String tells the STag.
func (mr *MR) String() string { return fmt.Sprintf("verbs.MR %#x", mr.r.STag()) }

// String tells the STag.
func (w *MW) String() string { return fmt.Sprintf("verbs.MW %#x", w.r.STag()) }

// String tells how many completions wait.
func (cq *CQ) String() string {
	return fmt.Sprintf("verbs.CQ with %d completions of %v", cq.n.Load(), cq.dev)
}

// String tells the number of the queue pair and its device.
func (qp *QP) String() string { return fmt.Sprintf("verbs.QP %d of %v", qp.num, qp.pd.dev) }

// String tells its device.
func (s *SRQ) String() string { return fmt.Sprintf("verbs.SRQ of %v", s.pd.dev) }

// String tells its device.
func (ch *CompChannel) String() string { return fmt.Sprintf("verbs.CompChannel of %v", ch.dev) }

// String tells its device.
func (ch *CMChannel) String() string { return fmt.Sprintf("verbs.CMChannel of %v", ch.dev) }

// String tells its device.
func (id *CMID) String() string { return fmt.Sprintf("verbs.CMID of %v", id.ch.dev) }

// String tells its device.
func (l *Listener) String() string { return fmt.Sprintf("verbs.Listener of %v", l.dev) }

// String tells its address.
func (l *TCPListener) String() string { return fmt.Sprintf("verbs.TCPListener %v", l.l.Addr()) }

// String names the peer that sent the request.
func (r *ConnRequest) String() string {
	if r.RemoteTCP != nil {
		return fmt.Sprintf("verbs.ConnRequest from %v", r.RemoteTCP)
	}
	return fmt.Sprintf("verbs.ConnRequest from %v", r.Remote)
}
