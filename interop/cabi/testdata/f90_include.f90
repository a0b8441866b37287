! mpif.h in free source form: a conjugate gradient on a ring of rows, with the calls
! that such programs make, and what only mpif.h leaves to the compiler.
program f90_include
    implicit none
    include 'mpif.h'
    integer, parameter :: rows = 64
    integer :: ierr, rank, size, up, down, comm, i, steps, requests(4), statuses(MPI_STATUS_SIZE, 4), coords(1), dims(1)
    logical :: periods(1), reorder, found
    real(8) :: x(0:rows + 1), r(rows), p(0:rows + 1), q(rows), b(rows), alpha, beta, rr, last, local(2), sums(2)
    complex(8) :: phase, phases
    character(len=5) :: word
    integer(kind=MPI_ADDRESS_KIND) :: lb, extent

    call MPI_INIT(ierr)
    call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
    dims(1) = size
    periods(1) = .false.
    reorder = .true.
    call MPI_CART_CREATE(MPI_COMM_WORLD, 1, dims, periods, reorder, comm, ierr)
    call MPI_COMM_RANK(comm, rank, ierr)
    call MPI_CART_COORDS(comm, rank, 1, coords, ierr)
    call MPI_CART_SHIFT(comm, 0, 1, down, up, ierr)
    call MPI_CART_GET(comm, 1, dims, periods, coords, ierr)
    if (periods(1) .or. coords(1) /= rank) call MPI_ABORT(MPI_COMM_WORLD, 3, ierr)

    ! solve -x(i-1) + 2.1 x(i) - x(i+1) = b
    x = 0
    do i = 1, rows
        b(i) = mod(rank*rows + i, 7) - 3
    end do
    r = b
    p = 0
    p(1:rows) = r
    call MPI_ALLREDUCE(sum(r*r), rr, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
    do steps = 1, 200
        call MPI_IRECV(p(0), 1, MPI_DOUBLE_PRECISION, down, 1, comm, requests(1), ierr)
        call MPI_IRECV(p(rows + 1), 1, MPI_DOUBLE_PRECISION, up, 2, comm, requests(2), ierr)
        call MPI_ISEND(p(1), 1, MPI_DOUBLE_PRECISION, down, 2, comm, requests(3), ierr)
        call MPI_ISEND(p(rows), 1, MPI_DOUBLE_PRECISION, up, 1, comm, requests(4), ierr)
        call MPI_WAITALL(4, requests, statuses, ierr)
        q = 2.1d0*p(1:rows) - p(0:rows - 1) - p(2:rows + 1)
        call MPI_ALLREDUCE(sum(p(1:rows)*q), alpha, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
        alpha = rr/alpha
        x(1:rows) = x(1:rows) + alpha*p(1:rows)
        r = r - alpha*q
        last = rr
        call MPI_ALLREDUCE(sum(r*r), rr, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
        if (rr < 1d-24) exit
        beta = rr/last
        p(1:rows) = r + beta*p(1:rows)
    end do
    if (rr >= 1d-24) call MPI_ABORT(MPI_COMM_WORLD, 4, ierr)
    call MPI_SENDRECV(x(1), 1, MPI_DOUBLE_PRECISION, down, 5, x(rows + 1), 1, MPI_DOUBLE_PRECISION, up, 5, comm, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_SENDRECV(x(rows), 1, MPI_DOUBLE_PRECISION, up, 6, x(0), 1, MPI_DOUBLE_PRECISION, down, 6, comm, &
                      MPI_STATUS_IGNORE, ierr)
    local(1) = maxval(abs(2.1d0*x(1:rows) - x(0:rows - 1) - x(2:rows + 1) - b))
    local(2) = -rank
    call MPI_REDUCE(local, sums, 2, MPI_DOUBLE_PRECISION, MPI_MAX, 0, comm, ierr)
    if (rank == 0 .and. (sums(1) > 1d-10 .or. sums(2) /= 0)) call MPI_ABORT(MPI_COMM_WORLD, 5, ierr)

    phase = exp(cmplx(0, 2*acos(-1d0)*rank/size, 8))
    call MPI_ALLREDUCE(phase, phases, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, comm, ierr)
    if (size > 1 .and. abs(phases) > 1d-12) call MPI_ABORT(MPI_COMM_WORLD, 6, ierr)
    word = 'other'
    if (rank == 0) word = 'first'
    call MPI_BCAST(word, 5, MPI_CHARACTER, 0, comm, ierr)
    if (word /= 'first') call MPI_ABORT(MPI_COMM_WORLD, 7, ierr)
    found = rank == size - 1
    call MPI_ALLREDUCE(MPI_IN_PLACE, found, 1, MPI_LOGICAL, MPI_LOR, comm, ierr)
    if (.not. found) call MPI_ABORT(MPI_COMM_WORLD, 8, ierr)
    call MPI_TYPE_GET_EXTENT(MPI_DOUBLE_COMPLEX, lb, extent, ierr)
    if (lb /= 0 .or. extent /= 16) call MPI_ABORT(MPI_COMM_WORLD, 9, ierr)
    if (MPI_SUBARRAYS_SUPPORTED .or. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_ABORT(MPI_COMM_WORLD, 10, ierr)
    call MPI_COMM_FREE(comm, ierr)
    call MPI_BARRIER(MPI_COMM_WORLD, ierr)
    call MPI_FINALIZE(ierr)
    if (rank == 0) print '(A)', 'ok'
end program
