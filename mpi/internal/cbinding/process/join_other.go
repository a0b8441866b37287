//go:build !unix

package process

import (
	"errors"
	"net"
)

func socketOf(int) (net.Conn, func(), error) { return nil, nil, errors.ErrUnsupported }
