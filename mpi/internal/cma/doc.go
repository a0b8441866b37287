// Package cma copies bytes between the memory of this process and that of another one of the same host, in one system
// call and without help of the other process: cross-memory attach (process_vm_readv, process_vm_writev). It needs
// Linux, and the permission to trace the other process, so callers probe first ([Holds]) and have another way.
//
// Addresses are those of the other process. They are not checked: a copy from or to memory that is not mapped there
// fails, but memory that has been reused is copied all the same.
package cma
