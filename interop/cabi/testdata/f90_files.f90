! Files with the module mpi: views, offsets, collective and split calls.
program f90_files
    use mpi
    implicit none
    integer :: ierr, rank, size, fh, st(MPI_STATUS_SIZE), n, i, etype, filetype, every, amode, request, class
    integer :: values(8), back(8)
    integer(MPI_OFFSET_KIND) :: offset, disp, length
    character(len=400) :: name
    character(len=20) :: datarep

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    call get_environment_variable("TMPDIR", name)
    if (name == "") name = "/tmp"
    name = trim(name)//"/f90_files.data"
    values = [(100 * rank + i, i=1, 8)]

    ! blanks behind the name are not part of it
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR + MPI_MODE_CREATE, MPI_INFO_NULL, fh, ierr)
    call check(ierr == MPI_SUCCESS, "open")
    call MPI_File_set_size(fh, 0_MPI_OFFSET_KIND, ierr)
    call MPI_File_get_amode(fh, amode, ierr)
    call check(amode == MPI_MODE_RDWR + MPI_MODE_CREATE, "amode")

    ! at explicit offsets, in bytes
    offset = 32 * rank
    call MPI_File_write_at_all(fh, offset, values, 8, MPI_INTEGER, st, ierr)
    call MPI_Get_count(st, MPI_INTEGER, n, ierr)
    call check(n == 8, "written")
    call MPI_File_sync(fh, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_get_size(fh, length, ierr)
    call check(length == 32 * size, "size")
    offset = 32 * mod(rank + 1, size)
    back = 0
    call MPI_File_read_at(fh, offset, back, 8, MPI_INTEGER, st, ierr)
    call check(all(back == [(100 * mod(rank + 1, size) + i, i=1, 8)]), "read at")
    call MPI_File_iread_at(fh, offset, back, 4, MPI_INTEGER, request, ierr)
    call MPI_Wait(request, st, ierr)
    call MPI_Get_count(st, MPI_INTEGER, n, ierr)
    call check(n == 4, "iread at")
    call MPI_Barrier(MPI_COMM_WORLD, ierr)

    ! a view of every size-th integer
    call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, int(4 * size, MPI_ADDRESS_KIND), every, ierr)
    call MPI_Type_commit(every, ierr)
    disp = 4 * rank
    call MPI_File_set_view(fh, disp, MPI_INTEGER, every, "native", MPI_INFO_NULL, ierr)
    call MPI_File_write_all(fh, values, 8, MPI_INTEGER, st, ierr)
    call MPI_File_get_position(fh, offset, ierr)
    call check(offset == 8, "position in items")
    call MPI_File_get_byte_offset(fh, offset, length, ierr)
    call check(length == disp + 8 * 4 * size, "byte offset")
    call MPI_File_get_view(fh, length, etype, filetype, datarep, ierr)
    call check(length == disp .and. etype == MPI_INTEGER .and. datarep == "native", "view")
    call MPI_File_seek(fh, 2_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call MPI_File_read_all_begin(fh, back, 2, MPI_INTEGER, ierr)
    call MPI_File_read_all_end(fh, back, st, ierr)
    call check(all(back(1:2) == 100 * rank + [3, 4]), "split read")
    call MPI_Type_free(every, ierr)
    call MPI_File_set_view(fh, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, "native", MPI_INFO_NULL, ierr)
    offset = 8 * size - 1
    call MPI_File_read_at(fh, offset, n, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    call check(n == 100 * (size - 1) + 8, "interleaved")

    ! one pointer for all
    call MPI_File_seek_shared(fh, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call MPI_File_write_ordered(fh, rank, 1, MPI_INTEGER, st, ierr)
    offset = rank
    call MPI_File_read_at_all(fh, offset, n, 1, MPI_INTEGER, st, ierr)
    call check(n == rank, "ordered")
    call MPI_File_close(fh, ierr)
    call check(fh == MPI_FILE_NULL, "closed")

    ! errors of files return
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) then
        call MPI_File_delete(name, MPI_INFO_NULL, ierr)
        call check(ierr == MPI_SUCCESS, "delete")
        call MPI_File_delete(name, MPI_INFO_NULL, ierr)
        call MPI_Error_class(ierr, class, n)
        call check(class == MPI_ERR_NO_SUCH_FILE, "delete what is gone")
    end if
    call MPI_File_open(MPI_COMM_SELF, trim(name)//".none", MPI_MODE_RDONLY, MPI_INFO_NULL, fh, ierr)
    call MPI_Error_class(ierr, class, n)
    call check(class == MPI_ERR_NO_SUCH_FILE, "open what is not there")

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
