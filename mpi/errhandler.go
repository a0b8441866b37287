package mpi

// An ErrorHandler handles an error of an operation on a communicator: the operation returns what it
// returns, so it may translate an error, or suppress it by returning nil (MPI_Errhandler; MPI-4.1,
// Section 9.3). The goroutine that gets the error calls it, before the operation returns; for a
// nonblocking operation that is when Wait or Test return the error.
type ErrorHandler func(c *Comm, err error) error

// AbortOnError is an ErrorHandler that ends the job (MPI_ERRORS_ARE_FATAL,
// MPI_ERRORS_ABORT).
func AbortOnError(c *Comm, err error) error {
	c.Abort(1, err.Error())
	return err
}

// SetErrorHandler makes h handle the errors of operations of the program on c, and on communicators
// that are made from c afterwards. With nil, the default, errors are returned (MPI_ERRORS_RETURN).
// It is local.
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

// raise calls the error handler and returns its result.
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

// raise calls the error handler for the error of r and returns its result. ErrCanceled is not
// passed to the handler.
func (r *Request) raise() error {
	if err := r.request.Err; err != nil && r.comm != nil && err != ErrCanceled {
		return r.comm.raised(err)
	}
	return r.request.Err
}
