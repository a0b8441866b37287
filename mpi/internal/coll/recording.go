package coll

// StepKind says what a Step does.
type StepKind uint8

// The kinds of steps.
const (
	StepExchange StepKind = iota // sends Out to Dst and receives In from Src, and waits for both
	StepReduce                   // is an exchange that stores to In what Mine and the message combine to
	StepStart                    // starts to send Out to Dst, or to receive In from Src
	StepWait                     // waits for all that was started
	StepCopy                     // copies Out to In
	StepCombine                  // stores Mine op Out to In
)

// A Step is what an algorithm does with messages, or with memory between them.
type Step struct {
	Kind     StepKind
	Lower    bool // of StepReduce: what comes is the left operand
	Awaited  bool // of a send: as StartSendAwaited
	Dst, Src int  // ProcNull for none
	Tag      int  // of the messages

	Out, In, Mine []byte
}

// A Recording is a Comm that performs nothing: it notes the steps that an algorithm asks for, to be taken one
// after the other later, whenever the messages that they wait for have come. No step of an algorithm depends
// on what messages hold.
type Recording struct {
	Steps []Step
	Tag   int // of the steps that follow
}

func (r *Recording) note(s Step) error {
	s.Tag = r.Tag
	r.Steps = append(r.Steps, s)
	return nil
}

// Send and the others implement Comm.
func (r *Recording) Send(b []byte, dst int) error { return r.Sendrecv(b, dst, nil, ProcNull) }

func (r *Recording) Recv(b []byte, src int) error { return r.Sendrecv(nil, ProcNull, b, src) }

func (r *Recording) Sendrecv(sb []byte, dst int, rb []byte, src int) error {
	return r.note(Step{Kind: StepExchange, Awaited: true, Dst: dst, Src: src, Out: sb, In: rb})
}

func (r *Recording) SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	return r.note(Step{Kind: StepReduce, Awaited: true, Dst: dst, Src: src, Out: sb, In: acc, Mine: mine, Lower: lower})
}

func (r *Recording) StartSend(b []byte, dst int) error {
	return r.note(Step{Kind: StepStart, Dst: dst, Src: ProcNull, Out: b})
}

func (r *Recording) StartSendAwaited(b []byte, dst int) error {
	return r.note(Step{Kind: StepStart, Awaited: true, Dst: dst, Src: ProcNull, Out: b})
}

func (r *Recording) StartRecv(b []byte, src int) error {
	return r.note(Step{Kind: StepStart, Dst: ProcNull, Src: src, In: b})
}

func (r *Recording) Wait() error { return r.note(Step{Kind: StepWait}) }

func (r *Recording) Copy(dst, src []byte) {
	if n := min(len(dst), len(src)); n > 0 {
		_ = r.note(Step{Kind: StepCopy, In: dst[:n], Out: src[:n]})
	}
}

func (r *Recording) Combine(acc, a, b []byte) {
	_ = r.note(Step{Kind: StepCombine, In: acc, Mine: a, Out: b})
}
