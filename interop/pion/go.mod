module github.com/pion/sctp

go 1.26.0

replace github.com/weftstack/weft => ../..

require (
	github.com/pion/logging v0.2.4
	github.com/pion/transport/v5 v5.1.4
	github.com/weftstack/weft v0.0.0-00010101000000-000000000000
)

require (
	github.com/klauspost/crc32 v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
