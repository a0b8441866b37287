package mpi

// An ErrorHandler decides what becomes of an error of an operation on a
// communicator: what it returns is what the operation returns, so it may also
// translate an error, or make it nothing by returning nil (MPI_Errhandler). It
// is called by the goroutine that gets the error, before the operation returns;
// errors of nonblocking operations go to it when Wait or Test return them
// (MPI-4.1, Section 9.3).
type ErrorHandler func(c *Comm, err error) error

// AbortOnError is an ErrorHandler that ends the job (MPI_ERRORS_ARE_FATAL,
// MPI_ERRORS_ABORT).
func AbortOnError(c *Comm, err error) error {
	c.Abort(1, err.Error())
	return err
}

// SetErrorHandler makes h get the errors of the operations of the program on c,
// and on communicators that are made from c afterwards. With nil, as from the
// start, errors are just returned (MPI_ERRORS_RETURN). It is local.
func (c *Comm) SetErrorHandler(h ErrorHandler) {
	if h == nil {
		c.onError.Store(nil)
		return
	}
	c.onError.Store(&h)
}

// ErrorHandler returns the handler of c, or nil (MPI_Comm_get_errhandler).
func (c *Comm) ErrorHandler() ErrorHandler {
	if h := c.onError.Load(); h != nil {
		return *h
	}
	return nil
}

// CallErrorHandler gives err to the handler of c and returns what that returns
// (MPI_Comm_call_errhandler). Without a handler it returns err.
func (c *Comm) CallErrorHandler(err error) error { return c.raise(err) }

// raise is what operations return instead of err.
func (c *Comm) raise(err error) error {
	if err == nil {
		return nil
	}
	return c.raised(err)
}

func (c *Comm) raised(err error) error {
	if h := c.onError.Load(); h != nil {
		return (*h)(c, err)
	}
	return err
}

// raise is what Wait and Test return instead of the error of r. That it was
// cancelled is no error to a handler.
func (r *Request) raise() error {
	if err := r.err; err != nil && r.comm != nil && err != ErrCanceled {
		return r.comm.raised(err)
	}
	return r.err
}
