//go:build !unix

package ddpmpa

// emss returns a likely segment size: this system does not tell the real one.
func emss(Conn) int { return defaultEMSS }
