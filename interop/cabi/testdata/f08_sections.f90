! Array sections with gaps as choice buffers of the module mpi_f08.
program f08_sections
    use mpi_f08
    implicit none
    integer :: rank, size, left, right, i, j, k, n, ierr, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: a(10), b(10), m(6, 7)
    integer, asynchronous :: flat(12), cube(4, 5, 6)
    real(8) :: x(8), y(8)
    complex :: z(6)
    character(len=4) :: words(6)
    type(MPI_Status) :: status
    type(MPI_Request) :: requests(2)
    type(MPI_Datatype) :: pairs
    type(MPI_Comm) :: comm

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    left = mod(rank + size - 1, size)
    right = mod(rank + 1, size)
    a = [(100 * rank + i, i=1, 10)]

    ! every second element goes, and into every second
    b = -1
    call MPI_Sendrecv(a(1:10:2), 5, MPI_INTEGER, right, 1, b(2:10:2), 5, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
    call check(all(b(2:10:2) == 100 * left + [1, 3, 5, 7, 9]) .and. all(b(1:9:2) == -1), "strides")
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 5, "count")

    ! backwards
    call MPI_Sendrecv(a(10:1:-3), 4, MPI_INTEGER, right, 2, flat, 12, MPI_INTEGER, left, 2, MPI_COMM_WORLD, status)
    call check(all(flat(1:4) == 100 * left + [10, 7, 4, 1]), "backwards")

    ! a block of a matrix, and only its first elements
    m = reshape([(1000 * rank + i, i=1, 42)], [6, 7])
    call MPI_Sendrecv(m(2:4, 3:6), 12, MPI_INTEGER, right, 3, flat, 12, MPI_INTEGER, left, 3, MPI_COMM_WORLD, status)
    call check(all(flat == [((1000 * left + 6 * (j - 1) + i, i=2, 4), j=3, 6)]), "block")
    flat = -1
    call MPI_Sendrecv(m(2:4, 3:6), 7, MPI_INTEGER, right, 4, flat, 12, MPI_INTEGER, left, 4, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 7 .and. all(flat(1:7) == 1000 * left + [14, 15, 16, 20, 21, 22, 26]) .and. flat(8) == -1, "part of a block")

    ! three dimensions, nonblocking, with a count of 64 bits
    cube = reshape([(1000 * rank + i, i=1, 120)], [4, 5, 6])
    flat = -1
    call MPI_Irecv(flat, 12_MPI_COUNT_KIND, MPI_INTEGER, left, 5, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(cube(1:4:3, 2:5:3, 1:6:2), 12_MPI_COUNT_KIND, MPI_INTEGER, right, 5, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(flat == [(((1000 * left + i + 4 * (j - 1) + 20 * (k - 1), i=1, 4, 3), j=2, 5, 3), k=1, 6, 2)]), "cube")

    ! elements of other types: parts of them, and several of them
    z = [(cmplx(rank, i), i=1, 6)]
    call MPI_Sendrecv_replace(z(2:6:2), 3, MPI_COMPLEX, right, 7, left, 7, MPI_COMM_WORLD, status)
    call check(all(z(2:6:2) == [cmplx(left, 2), cmplx(left, 4), cmplx(left, 6)]) .and. z(1) == cmplx(rank, 1), "complex")
    call MPI_Sendrecv_replace(z(2:6:2), 6, MPI_REAL, left, 8, right, 8, MPI_COMM_WORLD, status)
    call check(all(z(2:6:2) == [cmplx(rank, 2), cmplx(rank, 4), cmplx(rank, 6)]), "parts of complex")
    words = ["abcd", "efgh", "ijkl", "mnop", "qrst", "uvwx"]
    if (rank == 0) words(1:6:3) = ["0000", "3333"]
    call MPI_Bcast(words(1:6:3), 8, MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call check(words(1) == "0000" .and. words(4) == "3333" .and. words(2) == "efgh", "characters")
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pairs)
    call MPI_Type_commit(pairs)
    x = [(real(i + 10 * rank, 8), i=1, 8)]
    call MPI_Sendrecv(x(1:7:2), 2, pairs, right, 9, y, 8, MPI_DOUBLE_PRECISION, left, 9, MPI_COMM_WORLD, status)
    call check(all(y(1:4) == 10 * left + [1, 3, 5, 7]), "pairs of elements")
    call MPI_Type_free(pairs)

    ! items without data say nothing of the elements
    call MPI_Type_contiguous(0, MPI_INTEGER, pairs)
    call nothing("contiguous")
    call MPI_Type_vector(0, 1, 1, MPI_INTEGER, pairs)
    call nothing("vector")

    ! a gather takes a section for what is sent
    call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, comm)
    call MPI_Allgather(a(2:10:4), 3, MPI_INTEGER, flat, 3, MPI_INTEGER, comm)
    call check(all(flat(1:3) == 100 * rank + [2, 6, 10]), "gather")

    ! blocking calls get a copy where a datatype cannot describe the section
    b = -1
    call MPI_Allreduce(a(1:9:2), b(2:10:2), 5, MPI_INTEGER, MPI_SUM, comm)
    call check(all(b(2:10:2) == a(1:9:2)) .and. all(b(1:9:2) == -1), "reduction of sections")
    call MPI_Type_vector(2, 1, 3, MPI_INTEGER, pairs)
    call MPI_Type_commit(pairs)
    b = -1
    call MPI_Sendrecv(a(1:10:2), 1, pairs, 0, 1, b(1:4:3), 2, MPI_INTEGER, 0, 1, comm, status)
    call check(b(1) == a(1) .and. b(4) == a(7) .and. b(2) == -1, "gaps in the datatype too")

    ! what can be neither is refused, not sent from elsewhere
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call MPI_Iallreduce(a(1:9:2), b(1:5), 5, MPI_INTEGER, MPI_SUM, comm, requests(1), ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_BUFFER .and. ierr == MPI_ERR_BUFFER, "nonblocking reduction of a section")
    call MPI_Error_string(ierr, text, length)
    call check(index(text(1:length), "MPI_Iallreduce: a choice buffer") > 0, "its text")
    call MPI_Isend(a(1:10:2), 1, pairs, 0, 1, comm, requests(1), ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_TYPE .and. ierr == MPI_ERR_TYPE, "nonblocking with gaps in the datatype too")
    call MPI_Send(a(1:9:2), 6, MPI_INTEGER, 0, 1, comm, ierr)
    call MPI_Error_class(ierr, class)
    call check(class == MPI_ERR_TYPE, "more than the section has")
    call MPI_Type_free(pairs)
    call MPI_Comm_free(comm)

    call use_stack()
    call not_allocated()

    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Finalize()
    if (rank == 0) print '(A)', "ok"

contains
    ! nothing sends and receives items of the datatype pairs, which have no data.
    subroutine nothing(what)
        character(len=*), intent(in) :: what
        call MPI_Type_commit(pairs)
        b = -1
        call MPI_Irecv(b(1:9:2), 3, pairs, left, 10, MPI_COMM_WORLD, requests(1))
        call MPI_Isend(a(1:9:2), 2, pairs, right, 10, MPI_COMM_WORLD, requests(2))
        call MPI_Wait(requests(1), status)
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
        call MPI_Get_count(status, MPI_INTEGER, n)
        call check(n == 0 .and. all(b == -1), "nonblocking without data: " // what)
        call MPI_Sendrecv(a(1:9:2), 1, pairs, right, 11, b, 10, MPI_INTEGER, left, 11, MPI_COMM_WORLD, status)
        call MPI_Get_count(status, MPI_INTEGER, n)
        call check(n == 0 .and. all(b == -1), "without data: " // what)
        call MPI_Type_free(pairs)
    end subroutine

    ! use_stack leaves on the stack what no array has as its bounds.
    subroutine use_stack()
        integer(8), volatile :: used(4096)
        integer :: i
        do i = 1, 4096
            used(i) = 3 * i
        end do
    end subroutine

    ! What is significant at the root only is allocated there only. gfortran gives the bounds of a local array no values
    ! before it is allocated.
    subroutine not_allocated()
        integer, allocatable, asynchronous :: many(:, :)
        integer :: mine(2), total(2), twos(size), places(size)
        mine = [rank, -rank]
        twos = 2
        places = [(2 * i, i=0, size - 1)]
        if (rank == 0) allocate (many(2, size), source=-1)
        call MPI_Gather(mine, 2, MPI_INTEGER, many, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
        if (rank == 0) call whole(many, "gather")
        call MPI_Gatherv(mine, 2, MPI_INTEGER, many, twos, places, MPI_INTEGER, 0, MPI_COMM_WORLD)
        if (rank == 0) call whole(many, "gatherv")
        call MPI_Igather(mine, 2, MPI_INTEGER, many, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
        if (rank == 0) call whole(many, "igather")
        if (rank == 0) many = reshape([(i, -i, i=0, size - 1)], [2, size])
        mine = -1
        call MPI_Scatter(many, 2, MPI_INTEGER, mine, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
        call check(all(mine == [rank, -rank]), "scatter of an array that only the root has")
        mine = -1
        call MPI_Scatterv(many, twos, places, MPI_INTEGER, mine, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
        call check(all(mine == [rank, -rank]), "scatterv of an array that only the root has")
        call MPI_Reduce(mine, many, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
        if (rank == 0) then
            total = size * (size - 1) / 2 * [1, -1]
            call check(all(many(:, 1) == total), "reduction to an array that only the root has")
        end if
    end subroutine

    ! whole checks what the root has gathered, and forgets it.
    subroutine whole(many, what)
        integer, intent(inout) :: many(:, :)
        character(len=*), intent(in) :: what
        call check(all(many == reshape([(i, -i, i=0, size - 1)], [2, size])), what // " to an array that only the root has")
        many = -1
    end subroutine

    subroutine check(yes, what)
        logical, intent(in) :: yes
        character(len=*), intent(in) :: what
        if (.not. yes) then
            print *, rank, "wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program
