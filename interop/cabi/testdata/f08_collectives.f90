! Collective calls with the module mpi_f08: blocking, nonblocking, in place, with
! counts of 64 bits, arrays of datatypes, and operators of the program.
module operators
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
contains
    subroutine longest(invec, inoutvec, len, datatype)
        type(c_ptr), value :: invec, inoutvec
        integer :: len
        type(MPI_Datatype) :: datatype
        real(8), pointer :: a(:, :), b(:, :)
        integer :: i
        call c_f_pointer(invec, a, [2, len])
        call c_f_pointer(inoutvec, b, [2, len])
        do i = 1, len
            if (sum(a(:, i)**2) > sum(b(:, i)**2)) b(:, i) = a(:, i)
        end do
    end subroutine

    subroutine longest_c(invec, inoutvec, len, datatype)
        type(c_ptr), value :: invec, inoutvec
        integer(MPI_COUNT_KIND) :: len
        type(MPI_Datatype) :: datatype
        if (len > huge(0)) call MPI_Abort(MPI_COMM_WORLD, 2)
        call longest(invec, inoutvec, int(len), datatype)
    end subroutine
end module

program f08_collectives
    use mpi_f08
    use operators
    implicit none
    integer :: rank, size, i
    ! What a call uses after its return must be asynchronous, or the compiler may keep a copy (MPI-5.0, 19.1.16).
    integer, asynchronous :: n
    integer, allocatable, asynchronous :: a(:), b(:)
    integer, allocatable :: counts(:), displs(:)
    integer(MPI_COUNT_KIND), allocatable :: counts_c(:)
    integer(MPI_ADDRESS_KIND), allocatable :: displs_c(:)
    type(MPI_Datatype), allocatable :: types(:)
    type(MPI_Datatype) :: vector
    type(MPI_Op) :: op
    type(MPI_Request) :: request
    type(MPI_Comm) :: comm
    real(8) :: v(2, 3), w(2, 3)
    real(8) :: pair(2), best(2)
    logical :: yes, commute

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    allocate (a(size), b(size), counts(size), displs(size), counts_c(size), displs_c(size), types(size))

    n = 0
    if (rank == size - 1) n = 42
    call MPI_Bcast(n, 1, MPI_INTEGER, size - 1, MPI_COMM_WORLD)
    call check(n == 42, "bcast")

    call MPI_Allgather(rank, 1, MPI_INTEGER, a, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(a == [(i, i=0, size - 1)]), "allgather")
    a = -1
    a(rank + 1) = 10 * rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(a == [(10 * i, i=0, size - 1)]), "allgather in place")

    a = [(100 * rank + i, i=0, size - 1)]
    call MPI_Alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b == [(100 * i + rank, i=0, size - 1)]), "alltoall")
    call MPI_Alltoall(a, 1_MPI_COUNT_KIND, MPI_INTEGER, b, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b == [(100 * i + rank, i=0, size - 1)]), "alltoall with counts of 64 bits")

    ! one datatype and displacement in bytes for each rank
    counts = 1
    displs = [(4 * i, i=0, size - 1)]
    types = MPI_INTEGER
    b = -1
    call MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, MPI_COMM_WORLD)
    call check(all(b == [(100 * i + rank, i=0, size - 1)]), "alltoallw")
    counts_c = 1
    displs_c = displs
    b = -1
    call MPI_Ialltoallw(a, counts_c, displs_c, types, b, counts_c, displs_c, types, MPI_COMM_WORLD, request)
    types = MPI_DATATYPE_NULL ! the call has read the handles
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(b == [(100 * i + rank, i=0, size - 1)]), "ialltoallw")
    call check(request == MPI_REQUEST_NULL, "request")
    b = a
    call MPI_Alltoallw(MPI_IN_PLACE, counts, displs, types, b, counts, displs, [(MPI_INTEGER, i=1, size)], MPI_COMM_WORLD)
    call check(all(b == [(100 * i + rank, i=0, size - 1)]), "alltoallw in place")

    displs = [(i, i=0, size - 1)]
    call MPI_Gatherv(10 + rank, 1, MPI_INTEGER, b, counts, displs, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(all(b == [(10 + i, i=0, size - 1)]), "gatherv")
    if (rank == 0) then
        call MPI_Scatter(b, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    else
        call MPI_Scatter(b, 1, MPI_INTEGER, n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
        call check(n == 10 + rank, "scatter")
    end if

    n = rank + 1
    call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(n == size * (size + 1) / 2, "allreduce in place")
    call MPI_Scan(rank, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(n == rank * (rank + 1) / 2, "scan")
    n = -1
    call MPI_Exscan(1, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(n == merge(-1, rank, rank == 0), "exscan")
    a = [(rank + i, i=1, size)]
    call MPI_Reduce_scatter_block(a, n, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(n == size + rank, "reduce scatter")
    yes = rank /= 0
    call MPI_Allreduce(MPI_IN_PLACE, yes, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
    call check(.not. yes, "logical and")
    pair = [real(mod(rank * 3, 7), 8), real(rank, 8)]
    call MPI_Allreduce(pair, best, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD)
    n = maxloc([(mod(3 * i, 7), i=0, size - 1)], 1) - 1
    call check(nint(best(2)) == n .and. nint(best(1)) == mod(3 * n, 7), "maxloc")

    ! operators of the program on elements of a derived datatype
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, vector)
    call MPI_Type_commit(vector)
    v = reshape([real(8) :: 1, rank, 0, size - rank, 3, 3], [2, 3])
    call MPI_Op_create(longest, .true., op)
    call MPI_Op_commutative(op, commute)
    call check(commute, "commutative")
    call MPI_Allreduce(v, w, 3, vector, op, MPI_COMM_WORLD)
    call check(w(2, 1) == size - 1 .and. w(2, 2) == size .and. all(w(:, 3) == 3), "operator")
    call MPI_Op_free(op)
    call MPI_Op_create_c(longest_c, .true., op)
    w = 0
    call MPI_Allreduce(v, w, 3_MPI_COUNT_KIND, vector, op, MPI_COMM_WORLD)
    call check(w(2, 1) == size - 1 .and. w(2, 2) == size, "operator with a count of 64 bits")
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, "freed operator")
    call MPI_Type_free(vector)

    ! nonblocking and persistent
    call MPI_Iallreduce(rank, n, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(n == size - 1, "iallreduce")
    call MPI_Bcast_init(n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    do i = 1, 3
        n = merge(i, -1, rank == 0)
        call MPI_Start(request)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
        call check(n == i, "bcast init")
    end do
    call MPI_Request_free(request)
    call MPI_Comm_idup(MPI_COMM_WORLD, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Barrier(comm)
    call MPI_Comm_compare(comm, MPI_COMM_WORLD, n)
    call check(n == MPI_CONGRUENT, "idup")
    call MPI_Comm_free(comm)
    call check(comm == MPI_COMM_NULL .and. comm /= MPI_COMM_WORLD, "operators on handles")
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, comm)
    call MPI_Comm_rank(comm, n)
    call check(n == (size - 1 - mod(size - 1 - mod(rank, 2), 2) - rank) / 2, "split by key")
    call MPI_Comm_free(comm)

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
