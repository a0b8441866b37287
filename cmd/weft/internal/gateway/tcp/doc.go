// Package tcp carries TCP connections of any program between sites, over the flows of the gateways' associations:
// those that rules of the packet filter lead to this process, and those that a program asks for by SOCKS5. One that a
// program of this site opens is a connection of package stream to a gateway of the destination's site, whose process
// connects to the destination.
package tcp
