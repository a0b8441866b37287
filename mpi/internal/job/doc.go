// Package job is the part of one process in a job: how it learns of the other processes and proves that it belongs to
// them, the links to them over each transport, its RDMA device, what it does when one of them fails, and how it
// leaves. It knows processes and links, and neither communicators nor element types: what the layer above has to do
// is in [Face].
//
// A process that begins calls [New], opens its transport with [Job.OpenTransport], and connects with [Job.Join]. Links
// to processes of other jobs are made by [Job.ConnectGroups]. [Job.Finalize] ends all.
package job
