! cabi: ranks=1,2 transports=shm
! A data representation whose conversions are procedures of the program, and the
! booleans of the library.
module negative
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: states = 0
contains
    ! negate copies count integers; those of the file lie one after another, those of
    ! the program begin at a position.
    subroutine negate(from, at, to, position, count)
        type(c_ptr), intent(in) :: from, to
        integer, intent(in) :: count
        integer(MPI_OFFSET_KIND), intent(in) :: at, position
        integer, pointer :: a(:), b(:)
        call c_f_pointer(from, a, [at + count])
        call c_f_pointer(to, b, [position + count])
        b(position + 1:position + count) = -a(at + 1:at + count)
    end subroutine

    subroutine write_negative(userbuf, datatype, count, filebuf, position, extra_state, ierror)
        type(c_ptr), value :: userbuf, filebuf
        type(MPI_Datatype) :: datatype
        integer :: count, ierror
        integer(MPI_OFFSET_KIND) :: position
        integer(MPI_ADDRESS_KIND) :: extra_state
        if (extra_state == 99 .and. datatype == MPI_INTEGER) states = states + 1
        call negate(userbuf, position, filebuf, 0_MPI_OFFSET_KIND, count)
        ierror = MPI_SUCCESS
    end subroutine

    subroutine read_negative(userbuf, datatype, count, filebuf, position, extra_state, ierror)
        type(c_ptr), value :: userbuf, filebuf
        type(MPI_Datatype) :: datatype
        integer :: count, ierror
        integer(MPI_OFFSET_KIND) :: position
        integer(MPI_ADDRESS_KIND) :: extra_state
        if (extra_state == 99 .and. datatype == MPI_INTEGER) states = states + 1
        call negate(filebuf, 0_MPI_OFFSET_KIND, userbuf, position, count)
        ierror = MPI_SUCCESS
    end subroutine

    subroutine extent_of(datatype, extent, extra_state, ierror)
        type(MPI_Datatype) :: datatype
        integer(MPI_ADDRESS_KIND) :: extent, extra_state, lb
        integer :: ierror
        call MPI_Type_get_extent(datatype, lb, extent)
        ierror = MPI_SUCCESS
    end subroutine
end module

program f08_datarep
    use mpi_f08
    use negative
    implicit none
    type(MPI_File) :: fh
    integer :: rank, values(5), back(5), code, class, i
    logical :: yes, no, set
    character(len=400) :: name

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Abi_get_fortran_booleans(storage_size(yes)/8, yes, no, set)
    call check(set .and. yes .and. .not. no, "booleans")
    call MPI_Abi_set_fortran_booleans(storage_size(yes)/8, .true., .false., code)
    call check(code == MPI_SUCCESS, "booleans are those of the compiler")

    call MPI_Register_datarep("negative  ", read_negative, write_negative, extent_of, 99_MPI_ADDRESS_KIND)
    call MPI_Register_datarep("negative", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &
                              0_MPI_ADDRESS_KIND, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_DUP_DATAREP, "the same name again")

    call get_environment_variable("TMPDIR", name)
    if (name == "") name = "/tmp"
    call MPI_File_open(MPI_COMM_WORLD, trim(name)//"/f08_datarep.data", MPI_MODE_RDWR + MPI_MODE_CREATE + &
                       MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, fh)
    call MPI_File_set_view(fh, int(20*rank, MPI_OFFSET_KIND), MPI_INTEGER, MPI_INTEGER, "negative", MPI_INFO_NULL)
    values = [(10*rank + i, i=1, 5)]
    call MPI_File_write_at(fh, 0_MPI_OFFSET_KIND, values, 5, MPI_INTEGER, MPI_STATUS_IGNORE, code)
    call check(code == MPI_SUCCESS, "write")
    call MPI_File_read_at(fh, 0_MPI_OFFSET_KIND, back, 5, MPI_INTEGER, MPI_STATUS_IGNORE, code)
    call check(code == MPI_SUCCESS .and. all(back == values), "read")
    call check(states >= 2, "conversions with their extra state")
    call MPI_File_set_view(fh, int(20*rank, MPI_OFFSET_KIND), MPI_INTEGER, MPI_INTEGER, "native", MPI_INFO_NULL)
    call MPI_File_read_at(fh, 0_MPI_OFFSET_KIND, back, 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(back == -values), "what the file has")
    call MPI_File_close(fh)

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
