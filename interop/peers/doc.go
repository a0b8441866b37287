// Command peers measures weft side by side with other stacks, and runs the
// experiments of the papers under loss. It is a module of its own, so that weft
// does not depend on what it is compared with. It needs Linux.
//
//	go run . compare         bytes, messages and latency of all stacks, on loopback
//	go run . loss            ping-pong and farm under loss (root)
//	go run . bulk            goodput over long paths, against TCP (root)
//	go run . fair            two flows that share a line (root)
//	go run . scale           costs as associations, streams, queue pairs and data grow
//	go run . -write loss     … and write the section of docs/performance.md
//
// What is not installed is left out, with the reason.
package main
