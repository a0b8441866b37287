package coll

import "bytes"

// runOn runs an algorithm on s. If recorded is true it records the algorithm while the buffers hold nothing of
// use, fills them, and takes the recorded steps.
func runOn(s *Schedule, alg *Algorithm, recorded bool) error {
	if !recorded {
		return alg.Run(s)
	}
	m := s.Comm.(*memComm)
	send, recv := bytes.Clone(s.SendBuf), bytes.Clone(s.RecvBuf)
	clear(s.SendBuf)
	clear(s.RecvBuf)
	r := new(Recording)
	s.Comm = r
	if err := alg.Run(s); err != nil {
		return err
	}
	copy(s.SendBuf, send)
	copy(s.RecvBuf, recv)
	for _, step := range r.Steps {
		if err := m.take(step); err != nil {
			return err
		}
	}
	return nil
}

func (m *memComm) take(s Step) error {
	switch s.Kind {
	case StepExchange:
		return m.Sendrecv(s.Out, s.Dst, s.In, s.Src)
	case StepReduce:
		return m.SendrecvReduce(s.Out, s.Dst, s.In, s.Mine, s.Src, s.Lower)
	case StepStart:
		if s.Src == ProcNull {
			return m.StartSend(s.Out, s.Dst)
		}
		return m.StartRecv(s.In, s.Src)
	case StepWait:
		return m.Wait()
	case StepCopy:
		m.Copy(s.In, s.Out)
	case StepCombine:
		m.Combine(s.In, s.Mine, s.Out)
	}
	return nil
}
