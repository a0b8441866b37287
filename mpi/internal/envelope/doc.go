// Package envelope encodes what precedes every message between two ranks: the envelope
// of MPI-4.1, Section 3.2.3 (source, tag, communicator), and the control messages of the
// eager and rendezvous protocols.
//
// A message between ranks is one message of the transport: a header, then, for Eager, Sync
// and Data, a body of Length bytes. All fields are big endian.
//
//	 0      1      2         4        8          16     20     24       32     40
//	+------+------+---------+--------+----------+------+------+--------+------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   |  Eager (without id), Sync, RTS
//	+------+------+---------+--------+----------+------+------+--------+------+---------+---------+----------+
//	| kind | flags| type    | source | context  | tag  | seq  | length | id   | STag 40 | port 44 | token 48 |  RTSKey
//	+------+------+---------+--------+----------+------+------+--------+------+---------+---------+----------+
//	| kind | flags| 0       | 0      | id       | peer id     | length |         the other kinds
//	+------+------+---------+--------+----------+-------------+--------+---------+---------+----------+
//	| kind | flags| 0       | 0      | id       | peer id     | length | STag 32 | port 36 | token 40 |  CTSKey
//	+------+------+---------+--------+----------+-------------+--------+---------+---------+----------+
//
// A port is followed by two zero bytes, and a token has 16 bytes.
//
// Control messages have kinds of their own, so that no body can be taken for one.
package envelope
