"""Has gdb show the callers of the MPI functions that threads of a program are in (x86-64).

The library runs on stacks of its own, where the backtrace of gdb ends. The thread's stack goes on where
the Go runtime has left it: runtime.cgocallback keeps that place in m.g0.sched.sp of the thread's m.

    gdb -p PID -batch -x gdb.py -ex 'thread apply all backtrace'
"""

import gdb
import gdb.unwinder

# The frame of runtime.cgocallback on the thread's stack: 24 bytes, the frame pointer, the return address.
FRAME_POINTER, RETURN, CALLER = 24, 32, 40

# Where the stack of the thread was left: for another goroutine, and for the one that serves the call.
LEFT = ("runtime.mcall", "runtime.cgocallback", "runtime.systemstack", "runtime.nanotime1")


class Frame:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


def function(pc):
    block = gdb.block_for_pc(int(pc) & (1 << 64) - 1)
    while block and not block.function:
        block = block.superblock
    return block and block.function.name


def left_at():
    """Returns where the Go runtime has left the stack of the selected thread."""
    m = gdb.parse_and_eval("'runtime.allm'")
    while m:
        if int(m["procid"]) == gdb.selected_thread().ptid[1]:
            return int(m["g0"]["sched"]["sp"])
        m = m["alllink"]
    return 0


class Callers(gdb.unwinder.Unwinder):
    def __init__(self):
        super().__init__("weft")

    def __call__(self, frame):
        if frame.architecture().name() != "i386:x86-64":
            return None
        try:
            pc, sp = frame.read_register("rip"), frame.read_register("rsp")
            if function(pc) not in LEFT:
                return None
            left = left_at()
            at = lambda offset, type: gdb.Value(left + offset).cast(type.pointer()).dereference()
            caller = at(RETURN, pc.type)
            if not left or function(caller) != "crosscall2":
                return None  # a thread of the library
            found = frame.create_unwind_info(Frame(sp, pc))
            found.add_saved_register("rip", caller)
            found.add_saved_register("rsp", gdb.Value(left + CALLER).cast(sp.type))
            found.add_saved_register("rbp", at(FRAME_POINTER, sp.type))
            return found
        except (gdb.error, RuntimeError):  # no debugging information, or no such memory
            return None


gdb.unwinder.register_unwinder(None, Callers(), True)
