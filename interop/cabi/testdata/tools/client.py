"""A client in Python, by ctypes: calls some hundred functions as an interpreter with a module for
MPI does, with all arguments as integers and addresses.

usage: client.py mpi.h directory
"""

import ctypes as c
import os
import re
import sys

library = c.CDLL("libmpi_abi.so.1")
called = set()

# Constants: those of mpi.h that are a number, with or without a cast.
K = {}
with open(sys.argv[1]) as header:
    for line in header:
        m = re.match(r"#define (MPI_\w+) (?:\(\(.*\) (-?\d+)\)|\(?(-?\d+)\)?)$", line)
        if m:
            K[m[1]] = int(m[2] or m[3])

WORLD, SELF = K["MPI_COMM_WORLD"], K["MPI_COMM_SELF"]
INT, DOUBLE, BYTE = K["MPI_INT"], K["MPI_DOUBLE"], K["MPI_BYTE"]


class Status(c.Structure):
    _fields_ = [("source", c.c_int), ("tag", c.c_int), ("error", c.c_int), ("internal", c.c_int * 5)]


class Address(int):
    """An integer that is passed with the width of a pointer: MPI_Aint, MPI_Count, MPI_Offset."""


def handle(value=0):
    return c.c_void_p(value)


def argument(a):
    """Constants of the header are handles or int: both fit the 64 bits that a register has."""
    if isinstance(a, str):
        return c.c_char_p(a.encode())
    if isinstance(a, (int, Address)):
        return c.c_int64(a)
    if isinstance(a, (c.c_void_p, c.Array)) or not isinstance(a, c._SimpleCData):
        return a
    return c.byref(a)


def out(kind=c.c_int):
    return kind()


def code(name, *arguments):
    called.add(name)
    return getattr(library, "MPI_" + name)(*[argument(a) for a in arguments])


def call(name, *arguments):
    result = code(name, *arguments)
    if result != 0:
        text, length = c.create_string_buffer(K["MPI_MAX_ERROR_STRING"]), c.c_int()
        library.MPI_Error_string(result, text, c.byref(length))
        raise SystemExit(f"MPI_{name}{arguments}: {text.value.decode()}")


def at(x):
    """The address of what a function stores to."""
    return c.byref(x)


def want(got, wanted, what):
    if got != wanted:
        raise SystemExit(f"rank {rank.value}: {what}: {got!r}, want {wanted!r}")


def ints(*values):
    return (c.c_int * len(values))(*values)


rank, size, flag, n = c.c_int(), c.c_int(), c.c_int(), c.c_int()

# Environment.
call("Get_version", at(n), at(flag))
want((n.value, flag.value), (5, 0), "version")
call("Initialized", at(flag))
want(flag.value, 0, "initialized")
call("Init_thread", None, None, K["MPI_THREAD_MULTIPLE"], at(n))
want(n.value, K["MPI_THREAD_MULTIPLE"], "thread level")
call("Query_thread", at(n))
call("Is_thread_main", at(flag))
want(flag.value, 1, "main thread")
call("Comm_rank", WORLD, at(rank))
call("Comm_size", WORLD, at(size))
me, ranks = rank.value, size.value
right, left = (me + 1) % ranks, (me - 1) % ranks
name = c.create_string_buffer(K["MPI_MAX_PROCESSOR_NAME"])
call("Get_processor_name", name, at(n))
want(len(name.value), n.value, "length of the processor name")
version = c.create_string_buffer(K["MPI_MAX_LIBRARY_VERSION_STRING"])
call("Get_library_version", version, at(n))
want(b"weft" in version.value, True, "library version")
library.MPI_Wtime.restype = c.c_double
want(library.MPI_Wtime() > 0, True, "time")
called.add("Wtime")

# Errors.
call("Comm_set_errhandler", WORLD, K["MPI_ERRORS_RETURN"])
e = code("Send", None, -1, INT, right, 0, WORLD)
call("Error_class", e, at(n))
want(n.value, K["MPI_ERR_COUNT"], "class of a negative count")
call("Add_error_class", at(n))
own = n.value
call("Add_error_code", own, at(flag))
call("Add_error_string", flag.value, "an error of mine")
text = c.create_string_buffer(K["MPI_MAX_ERROR_STRING"])
call("Error_string", flag.value, text, at(n))
want(b"an error of mine" in text.value, True, "error string")
seen = []
Handler = c.CFUNCTYPE(None, c.POINTER(c.c_void_p), c.POINTER(c.c_int))
on_error = Handler(lambda comm, e: seen.append((comm[0], e[0])))
h = handle()
call("Comm_create_errhandler", on_error, at(h))
call("Comm_set_errhandler", WORLD, h)
e = code("Send", None, 0, INT, ranks, 0, WORLD)
want(seen, [(WORLD, e)], "calls of the error handler")
call("Comm_call_errhandler", WORLD, own)
want(seen[1:], [(WORLD, own)], "calls of the error handler")
call("Errhandler_free", at(h))
call("Comm_set_errhandler", WORLD, K["MPI_ERRORS_ARE_FATAL"])

# Messages.
s = Status()
a, b = ints(me, 7, 8), ints(0, 0, 0)
call("Sendrecv", a, 3, INT, right, 1, b, 3, INT, left, 1, WORLD, at(s))
want((list(b), s.source, s.tag), ([left, 7, 8], left, 1), "sendrecv")
call("Get_count", at(s), INT, at(n))
want(n.value, 3, "count")
large = c.c_int64()
call("Get_count_c", at(s), INT, at(large))
want(large.value, 3, "large count")
call("Get_elements", at(s), INT, at(n))
call("Get_elements_x", at(s), INT, at(large))
requests = (c.c_void_p * 2)()
statuses = (Status * 2)()
call("Irecv", b, 3, INT, left, 2, WORLD, c.byref(requests, 0))
call("Isend", a, 3, INT, right, 2, WORLD, c.byref(requests, c.sizeof(c.c_void_p)))
call("Waitall", 2, requests, statuses)
want(statuses[0].tag, 2, "tag")
call("Irecv", b, 3, INT, left, 3, WORLD, c.byref(requests, 0))
call("Issend", a, 3, INT, right, 3, WORLD, c.byref(requests, c.sizeof(c.c_void_p)))
done = 0
while done < 2:
    call("Waitany", 2, requests, at(n), at(s))
    done += 1
call("Waitany", 2, requests, at(n), at(s))
want(n.value, K["MPI_UNDEFINED"], "index of no request")
call("Isend", a, 3, INT, right, 4, WORLD, c.byref(requests, 0))
call("Probe", left, 4, WORLD, at(s))
call("Iprobe", left, 4, WORLD, at(flag), at(s))
want(flag.value, 1, "probed")
m = handle()
call("Mprobe", left, 4, WORLD, at(m), at(s))
call("Mrecv", b, 3, INT, at(m), at(s))
call("Wait", c.byref(requests, 0), at(s))
buffer = c.create_string_buffer(10000)
call("Buffer_attach", buffer, 10000)
call("Bsend", a, 3, INT, right, 5, WORLD)
call("Recv", b, 3, INT, left, 5, WORLD, at(s))
back, length = handle(), c.c_int()
call("Buffer_detach", at(back), at(length))
want((back.value, length.value), (c.addressof(buffer), 10000), "buffer")
call("Send_init", a, 3, INT, right, 6, WORLD, c.byref(requests, 0))
call("Recv_init", b, 3, INT, left, 6, WORLD, c.byref(requests, c.sizeof(c.c_void_p)))
for i in range(3):
    a[1] = i
    call("Startall", 2, requests)
    finished = False
    while not finished:
        call("Testall", 2, requests, at(flag), statuses)
        finished = flag.value
    want(b[1], i, "persistent message")
call("Request_free", c.byref(requests, 0))
call("Request_free", c.byref(requests, c.sizeof(c.c_void_p)))
call("Sendrecv_replace", a, 3, INT, right, 7, left, 7, WORLD, at(s))
want(a[0], left, "replaced")
a[0] = me

# Datatypes.
t, u = handle(), handle()
call("Type_vector", 3, 1, 2, INT, at(t))
call("Type_commit", at(t))
call("Type_size", t, at(n))
want(n.value, 12, "size")
lb, extent = c.c_int64(), c.c_int64()
call("Type_get_extent", t, at(lb), at(extent))
want((lb.value, extent.value), (0, 20), "extent")
x, y = ints(1, 2, 3, 4, 5), ints(0, 0, 0, 0, 0)
call("Sendrecv", x, 1, t, right, 8, y, 1, t, left, 8, WORLD, at(s))
want(list(y), [1, 0, 3, 0, 5], "vector")
call("Type_create_resized", t, 0, Address(24), at(u))
call("Type_commit", at(u))
call("Type_get_extent", u, at(lb), at(extent))
want(extent.value, 24, "resized")
call("Type_free", at(u))
call("Type_create_struct", 2, ints(1, 2), (c.c_int64 * 2)(0, 8), (c.c_void_p * 2)(INT, DOUBLE), at(u))
call("Type_size", u, at(n))
want(n.value, 20, "struct")
counts = [c.c_int() for _ in range(4)]
call("Type_get_envelope", u, *[at(i) for i in counts])
want([i.value for i in counts], [3, 2, 2, K["MPI_COMBINER_STRUCT"]], "envelope")
call("Type_set_name", u, "pair")
call("Type_get_name", u, name, at(n))
want(name.value, b"pair", "name of a type")
call("Type_dup", u, at(h))
call("Type_free", at(h))
call("Type_free", at(u))
packed, position = c.create_string_buffer(100), c.c_int()
call("Pack_size", 1, t, WORLD, at(n))
call("Pack", x, 1, t, packed, 100, at(position), WORLD)
want(position.value, 12, "packed")
position.value = 0
z = ints(0, 0, 0)
call("Unpack", packed, 12, at(position), z, 3, INT, WORLD)
want(list(z), [1, 3, 5], "unpacked")
call("Type_free", at(t))
call("Type_contiguous", 4, BYTE, at(t))
call("Type_commit", at(t))
call("Type_free", at(t))
address = c.c_int64()
call("Get_address", x, at(address))
want(address.value, c.addressof(x), "address")

# Collectives.
call("Barrier", WORLD)
call("Bcast", x, 5, INT, 0, WORLD)
total = ints(0)
call("Allreduce", ints(me), total, 1, INT, K["MPI_SUM"], WORLD)
want(total[0], ranks * (ranks - 1) // 2, "sum")
call("Reduce", ints(me), total, 1, INT, K["MPI_MAX"], 0, WORLD)
if me == 0:
    want(total[0], ranks - 1, "maximum")
total[0] = me
call("Allreduce", K["MPI_IN_PLACE"], total, 1, INT, K["MPI_SUM"], WORLD)
want(total[0], ranks * (ranks - 1) // 2, "sum in place")
every = (c.c_int * ranks)()
call("Allgather", ints(me), 1, INT, every, 1, INT, WORLD)
want(list(every), list(range(ranks)), "allgather")
call("Gather", ints(me * 2), 1, INT, every, 1, INT, 0, WORLD)
call("Scatter", every, 1, INT, total, 1, INT, 0, WORLD)
want(total[0], me * 2, "scatter")
call("Alltoall", (c.c_int * ranks)(*[me * 10 + i for i in range(ranks)]), 1, INT, every, 1, INT, WORLD)
want(list(every), [i * 10 + me for i in range(ranks)], "alltoall")
call("Allgatherv", ints(me), 1, INT, every, (c.c_int * ranks)(*[1] * ranks), (c.c_int * ranks)(*range(ranks)), INT, WORLD)
want(list(every), list(range(ranks)), "allgatherv")
call("Scan", ints(1), total, 1, INT, K["MPI_SUM"], WORLD)
want(total[0], me + 1, "scan")
call("Exscan", ints(1), total, 1, INT, K["MPI_SUM"], WORLD)
call("Reduce_scatter_block", (c.c_int * ranks)(*[1] * ranks), total, 1, INT, K["MPI_SUM"], WORLD)
want(total[0], ranks, "reduce_scatter_block")
call("Iallreduce", ints(1), total, 1, INT, K["MPI_SUM"], WORLD, c.byref(requests, 0))
call("Wait", c.byref(requests, 0), at(s))
want(total[0], ranks, "iallreduce")
call("Ibarrier", WORLD, c.byref(requests, 0))
call("Wait", c.byref(requests, 0), None)
Operator = c.CFUNCTYPE(None, c.POINTER(c.c_int), c.POINTER(c.c_int), c.POINTER(c.c_int), c.POINTER(c.c_void_p))


def first(a, b, length, datatype):
    """The left operand: the order matters."""
    for i in range(length[0]):
        b[i] = a[i]


operator = Operator(first)
op = handle()
call("Op_create", operator, 0, at(op))
call("Allreduce", ints(me + 1), total, 1, INT, op, WORLD)
want(total[0], 1, "operator of mine")
call("Op_commutative", op, at(flag))
want(flag.value, 0, "commutative")
call("Op_free", at(op))
call("Reduce_local", ints(3), total, 1, INT, K["MPI_PROD"])

# Communicators and groups.
comm, group, sub = handle(), handle(), handle()
call("Comm_dup", WORLD, at(comm))
call("Comm_compare", WORLD, comm, at(n))
want(n.value, K["MPI_CONGRUENT"], "comparison")
call("Comm_set_name", comm, "mine")
call("Comm_get_name", comm, name, at(n))
want(name.value, b"mine", "name")
call("Comm_group", comm, at(group))
call("Group_size", group, at(n))
want(n.value, ranks, "group")
call("Group_rank", group, at(n))
want(n.value, me, "rank in the group")
call("Group_incl", group, 1, ints(0), at(sub))
call("Group_translate_ranks", sub, 1, ints(0), group, total)
want(total[0], 0, "translated")
call("Group_free", at(sub))
call("Group_free", at(group))
call("Comm_test_inter", comm, at(flag))
call("Comm_split", comm, me % 2, -me, at(h))
call("Comm_size", h, at(n))
want(n.value, (ranks + 1 - me % 2) // 2, "split")
call("Comm_free", at(h))
Copy = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(c.c_int))
Delete = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_void_p, c.c_void_p)
deleted = []


def copy_attribute(old, key, extra, value, new, flag):
    new[0] = value + 1
    flag[0] = 1
    return 0


def delete_attribute(comm, key, value, extra):
    deleted.append(value)
    return 0


copy, delete = Copy(copy_attribute), Delete(delete_attribute)
key, value = c.c_int(), handle()
call("Comm_create_keyval", copy, delete, at(key), None)
call("Comm_set_attr", comm, key.value, handle(41))
call("Comm_dup", comm, at(h))
call("Comm_get_attr", h, key.value, at(value), at(flag))
want((flag.value, value.value), (1, 42), "copied attribute")
call("Comm_free", at(h))
want(deleted, [42], "deleted attributes")
call("Comm_delete_attr", comm, key.value)
want(deleted, [42, 41], "deleted attributes")
call("Comm_free_keyval", at(key))
call("Comm_get_attr", WORLD, K["MPI_TAG_UB"], at(value), at(flag))
want(c.cast(value, c.POINTER(c.c_int))[0] >= 32767, True, "greatest tag")
dims = ints(0, 0)
call("Dims_create", ranks, 2, dims)
call("Cart_create", comm, 2, dims, ints(1, 0), 0, at(h))
call("Cartdim_get", h, at(n))
coords = ints(0, 0)
call("Cart_coords", h, me, 2, coords)
call("Cart_rank", h, coords, at(n))
want(n.value, me, "rank of the coordinates")
call("Cart_shift", h, 0, 1, at(n), at(flag))
call("Topo_test", h, at(n))
want(n.value, K["MPI_CART"], "topology")
call("Comm_free", at(h))

# Info.
info = handle()
call("Info_create", at(info))
call("Info_set", info, "color", "red")
call("Info_get_nkeys", info, at(n))
want(n.value, 1, "keys")
length.value = 100
call("Info_get_string", info, "color", at(length), name, at(flag))
want((flag.value, name.value), (1, b"red"), "value")
call("Info_delete", info, "color")
call("Info_free", at(info))

# Windows.
base, win = handle(), handle()
call("Win_allocate", Address(80), 8, K["MPI_INFO_NULL"], WORLD, at(base), at(win))
memory = c.cast(base, c.POINTER(c.c_int64))
for i in range(10):
    memory[i] = 0
INT64 = K["MPI_INT64_T"]
call("Win_fence", 0, win)
call("Put", (c.c_int64 * 1)(me + 5), 1, INT64, right, Address(1), 1, INT64, win)
call("Win_fence", 0, win)
want(memory[1], left + 5, "put")
call("Win_lock_all", 0, win)
call("Accumulate", (c.c_int64 * 1)(1), 1, INT64, 0, Address(2), 1, INT64, K["MPI_SUM"], win)
old = (c.c_int64 * 1)()
call("Fetch_and_op", (c.c_int64 * 1)(1), old, INT64, 0, Address(3), K["MPI_SUM"], win)
call("Win_flush", 0, win)
want(0 <= old[0] < ranks, True, "fetched")
call("Win_unlock_all", win)
call("Barrier", WORLD)
call("Win_lock", K["MPI_LOCK_SHARED"], 0, 0, win)
call("Get", old, 1, INT64, 0, Address(2), 1, INT64, win)
call("Win_unlock", 0, win)
want(old[0], ranks, "accumulated")
call("Win_free", at(win))
call("Alloc_mem", Address(100), K["MPI_INFO_NULL"], at(base))
call("Free_mem", base)

# Files.
path = os.path.join(sys.argv[2], "file")
f = handle()
call("File_open", WORLD, path, K["MPI_MODE_CREATE"] | K["MPI_MODE_RDWR"], K["MPI_INFO_NULL"], at(f))
call("File_write_at_all", f, Address(12 * me), ints(me, me, me), 3, INT, at(s))
call("File_sync", f)
call("Barrier", WORLD)
call("File_read_at", f, Address(12 * right), z, 3, INT, at(s))
want(list(z), [right] * 3, "read")
offset = c.c_int64()
call("File_get_size", f, at(offset))
want(offset.value, 12 * ranks, "size of the file")
call("File_set_view", f, Address(12 * me), INT, INT, "native", K["MPI_INFO_NULL"])
call("File_seek", f, Address(1), K["MPI_SEEK_SET"])
call("File_read", f, z, 1, INT, at(s))
call("File_get_position", f, at(offset))
want((z[0], offset.value), (me, 2), "read by a view")
call("File_close", at(f))
call("Barrier", WORLD)
if me == 0:
    call("File_delete", path, K["MPI_INFO_NULL"])

call("Comm_free", at(comm))
call("Barrier", WORLD)
call("Finalize")
call("Finalized", at(flag))
want(flag.value, 1, "finalized")
if me == 0:
    print(len(called), "functions")
    print("ok")
