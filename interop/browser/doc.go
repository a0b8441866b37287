// Command browser serves a page that measures WebRTC data channels between a browser and this program: throughput,
// latency, what partial reliability loses, and what closing a channel does. The program is an ordinary user of
// pion/webrtc; its go.mod puts weft's SCTP below by one replace line. See README.md.
package main
