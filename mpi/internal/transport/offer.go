package transport

// Offer is the buffer of a send that the receiver may read.
type Offer interface {
	// Over ends the access and reports true if the receiver is known to have read everything and nothing has to be waited
	// for. Otherwise it changes nothing.
	Over() bool
	// Withdraw ends the access and calls then once nothing reads the buffer any more: before it returns, or later on any
	// goroutine. whole says that the receiver is known to have read all of it.
	Withdraw(then func(whole bool))
}
