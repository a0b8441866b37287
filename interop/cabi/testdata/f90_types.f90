! Datatypes with the module mpi: constructors, contents, absolute addresses,
! types by precision, and data with gaps between ranks.
program f90_types
    use mpi
    implicit none
    type record
        sequence
        integer :: i
        real :: r
        double precision :: d(2)
        character(len=8) :: s
    end type
    type(record) :: mine, theirs
    integer :: ierr, rank, size, right, left, newtype, i, j, n, combiner, ni, na, nd
    integer :: ints(8), types(4), lengths(4), st(MPI_STATUS_SIZE), old
    integer(MPI_ADDRESS_KIND) :: disp(4), base, lb, extent, addresses(4)
    integer(MPI_COUNT_KIND) :: xsize
    integer :: matrix(4, 5), row(5), got(6)
    real(8) :: wide(6, 6), part(2, 3)
    real(selected_real_kind(15, 300)) :: precise
    integer(selected_int_kind(9)) :: whole

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    right = mod(rank + 1, size)
    left = mod(rank + size - 1, size)

    ! a row of a matrix is a vector
    do j = 1, 5
        do i = 1, 4
            matrix(i, j) = 100 * rank + 10 * i + j
        end do
    end do
    call MPI_Type_vector(5, 1, 4, MPI_INTEGER, newtype, ierr)
    call MPI_Type_commit(newtype, ierr)
    call MPI_Type_size(newtype, n, ierr)
    call check(n == 20, "size of a vector")
    call MPI_Type_get_extent(newtype, lb, extent, ierr)
    call check(lb == 0 .and. extent == 17 * 4, "extent of a vector")
    call MPI_Sendrecv(matrix(3, 1), 1, newtype, right, 1, row, 5, MPI_INTEGER, left, 1, MPI_COMM_WORLD, st, ierr)
    call check(all(row == [(100 * left + 30 + j, j=1, 5)]), "row")
    call MPI_Get_elements(st, newtype, n, ierr)
    call check(n == 5, "elements")
    call MPI_Type_get_envelope(newtype, ni, na, nd, combiner, ierr)
    call check(combiner == MPI_COMBINER_VECTOR .and. ni == 3 .and. na == 0 .and. nd == 1, "envelope of a vector")
    call MPI_Type_get_contents(newtype, ni, na, nd, ints, addresses, types, ierr)
    call check(all(ints(1:3) == [5, 1, 4]) .and. types(1) == MPI_INTEGER, "contents of a vector")
    call MPI_Type_free(newtype, ierr)
    call check(newtype == MPI_DATATYPE_NULL, "freed type")

    ! a structure by its addresses, relative and absolute
    mine = record(rank, rank + 0.5, [rank * 2d0, rank * 3d0], "rank")
    call MPI_Get_address(mine%i, disp(1), ierr)
    call MPI_Get_address(mine%r, disp(2), ierr)
    call MPI_Get_address(mine%d, disp(3), ierr)
    call MPI_Get_address(mine%s, disp(4), ierr)
    base = disp(1)
    lengths = [1, 1, 2, 8]
    types = [MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_CHARACTER]
    call MPI_Type_create_struct(4, lengths, disp, types, newtype, ierr) ! absolute: MPI_BOTTOM
    call MPI_Type_commit(newtype, ierr)
    do i = 1, 4
        disp(i) = MPI_Aint_diff(disp(i), base)
    end do
    call check(MPI_Aint_add(base, disp(3)) == base + 8, "aint add")
    call MPI_Type_create_struct(4, lengths, disp, types, old, ierr)
    call MPI_Type_commit(old, ierr)
    call MPI_Type_get_extent(old, lb, extent, ierr)
    call check(extent == 32, "extent of a structure")
    call MPI_Sendrecv(MPI_BOTTOM, 1, newtype, right, 2, theirs, 1, old, left, 2, MPI_COMM_WORLD, st, ierr)
    call check(theirs%i == left .and. theirs%r == left + 0.5 .and. all(theirs%d == [left * 2d0, left * 3d0]) &
               .and. theirs%s == "rank", "structure from absolute addresses")
    theirs%i = -1
    mine%i = 1000 + rank
    call MPI_Sendrecv(mine, 1, old, right, 3, theirs, 1, old, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(theirs%i == 1000 + left, "structure")
    call MPI_Type_free(old, ierr)
    call MPI_Type_free(newtype, ierr)

    ! a subarray in the order of Fortran, starting at zero
    do j = 1, 6
        do i = 1, 6
            wide(i, j) = rank * 100 + i * 10 + j
        end do
    end do
    call MPI_Type_create_subarray(2, [6, 6], [2, 3], [1, 2], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, newtype, ierr)
    call MPI_Type_commit(newtype, ierr)
    call MPI_Sendrecv(wide, 1, newtype, right, 4, part, 6, MPI_DOUBLE_PRECISION, left, 4, MPI_COMM_WORLD, st, ierr)
    do j = 1, 3
        do i = 1, 2
            call check(part(i, j) == left * 100 + (i + 1) * 10 + j + 2, "subarray")
        end do
    end do
    call MPI_Type_free(newtype, ierr)

    ! indexed and resized
    call MPI_Type_indexed(2, [1, 2], [0, 2], MPI_INTEGER, old, ierr)
    call MPI_Type_create_resized(old, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, newtype, ierr)
    call MPI_Type_commit(newtype, ierr)
    call MPI_Type_size_x(newtype, xsize, ierr)
    call check(xsize == 12, "size x")
    ints = [(rank * 10 + i, i=1, 8)]
    call MPI_Sendrecv(ints, 2, newtype, right, 5, got, 6, MPI_INTEGER, left, 5, MPI_COMM_WORLD, st, ierr)
    call check(all(got == left * 10 + [1, 3, 4, 5, 7, 8]), "indexed")
    call MPI_Type_free(old, ierr)
    call MPI_Type_free(newtype, ierr)

    ! types by what they can hold (MPI-5.0, 19.1.9)
    call MPI_Type_create_f90_real(15, 300, newtype, ierr)
    call MPI_Type_size(newtype, n, ierr)
    call MPI_Sizeof(precise, i, ierr)
    call check(n == i .and. n == 8, "f90 real")
    call MPI_Type_get_envelope(newtype, ni, na, nd, combiner, ierr)
    call check(combiner == MPI_COMBINER_F90_REAL, "envelope of a f90 real")
    call MPI_Type_create_f90_integer(9, newtype, ierr)
    call MPI_Type_size(newtype, n, ierr)
    call MPI_Sizeof(whole, i, ierr)
    call check(n == i .and. n == 4, "f90 integer")
    call MPI_Type_create_f90_complex(6, 30, newtype, ierr)
    call MPI_Type_size(newtype, n, ierr)
    call check(n == 8, "f90 complex")
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, newtype, ierr)
    call check(newtype == MPI_REAL8 .or. newtype == MPI_DOUBLE_PRECISION, "match size")
    call MPI_Sizeof(wide, n, ierr)
    call check(n == 8, "sizeof of an array is that of an element")

    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Finalize(ierr)
    if (rank == 0) print '(A)', "ok"

contains
    subroutine check(yes, what)
        logical, intent(in) :: yes
        character(len=*), intent(in) :: what
        if (.not. yes) then
            print *, rank, "wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
        end if
    end subroutine
end program
