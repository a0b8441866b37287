! Windows with the module mpi_f08: memory as a C pointer, all ways to synchronize,
! attributes of a window, atomic updates.
program f08_windows
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: rank, size, right, left, i, unit
    integer, asynchronous :: n
    integer(MPI_ADDRESS_KIND) :: bytes, base, value, at
    type(MPI_Win) :: win
    type(MPI_Group) :: world, near
    type(MPI_Request) :: request
    type(MPI_Comm) :: node
    type(c_ptr) :: memory
    integer, pointer :: cells(:), theirs(:)
    integer, target, asynchronous :: own(10)
    integer, asynchronous :: got(10), zero, one
    logical :: flag

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    right = mod(rank + 1, size)
    left = mod(rank + size - 1, size)

    ! memory of the program, fences
    own = -1
    bytes = 40
    call MPI_Win_create(own, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, base, flag)
    call MPI_Get_address(own, at)
    call check(flag .and. base == at, "base attribute")
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
    call check(flag .and. value == 40, "size attribute")
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag)
    call check(flag .and. value == 4, "unit attribute")
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, "flavor attribute")
    call MPI_Win_fence(0, win)
    got = [(100 * rank + i, i=1, 10)]
    call MPI_Put(got, 3, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(own == [-1, -1, 100 * left + 1, 100 * left + 2, 100 * left + 3, -1, -1, -1, -1, -1]), "put")
    got = 0
    call MPI_Get(got(1:10:3), 3, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(got(1:7:3) == 100 * rank + [1, 2, 3]) .and. got(2) == 0, "get into a section")
    call MPI_Accumulate(rank + 1, 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    if (rank == 0) call check(own(1) == size * (size + 1) / 2 - 1, "accumulate")

    ! post, start, complete, wait
    call MPI_Win_get_group(win, world)
    call MPI_Group_incl(world, 1, [left], near)
    call MPI_Win_post(near, 0, win)
    call MPI_Group_free(near)
    call MPI_Group_incl(world, 1, [right], near)
    call MPI_Win_start(near, 0, win)
    call MPI_Put(rank, 1, MPI_INTEGER, right, 9_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
    call MPI_Win_complete(win)
    call MPI_Win_wait(win)
    call check(own(10) == left, "post and start")
    call MPI_Group_free(near)
    call MPI_Group_free(world)
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, "freed window")

    ! memory of the library, locks, atomic updates
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
    call check(c_associated(memory), "memory of the library")
    call c_f_pointer(memory, cells, [10])
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win)
    cells = 0
    call MPI_Win_unlock(rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    one = 1
    call MPI_Fetch_and_op(one, n, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_flush(0, win)
    call check(n >= 0 .and. n < size, "fetch and op")
    zero = 0
    call MPI_Compare_and_swap(rank + 7, zero, n, MPI_INTEGER, 0, 1_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush(0, win)
    call MPI_Rput([rank, rank], 2, MPI_INTEGER, right, 4_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Get_accumulate([5, 5], 2, MPI_INTEGER, got, 2, MPI_INTEGER, right, 6_MPI_ADDRESS_KIND, 2, MPI_INTEGER, &
                            MPI_SUM, win)
    call MPI_Win_flush_all(win)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)
    call MPI_Get(got, 2, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win)
    call MPI_Win_unlock(0, win)
    call check(got(1) == size, "sum of fetches")
    call check(got(2) >= 7 .and. got(2) < 7 + size, "one swap")
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call check(all(cells(5:8) == [left, left, 5, 5]), "rput and get accumulate")
    call MPI_Win_unlock(rank, win)
    call MPI_Win_free(win)

    ! memory that the processes of a node share
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, i)
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, node, memory, win)
    call c_f_pointer(memory, cells, [2])
    call MPI_Win_lock_all(0, win)
    cells = [i, -i]
    call MPI_Win_sync(win)
    call MPI_Barrier(node)
    call MPI_Win_sync(win)
    call MPI_Win_shared_query(win, 0, bytes, unit, memory)
    call check(bytes == 8 .and. unit == 4, "shared query")
    call c_f_pointer(memory, theirs, [2])
    call check(all(theirs == 0), "shared memory of rank 0")
    call MPI_Win_unlock_all(win)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)

    call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
    call c_f_pointer(memory, cells, [16])
    cells = 3
    call MPI_Free_mem(cells)

    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Finalize()
    if (rank == 0) print '(A)', "ok"

contains
    subroutine check(yes, what)
        logical, intent(in) :: yes
        character(len=*), intent(in) :: what
        if (.not. yes) then
            print *, rank, "wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program
