! cabi: ranks=1,2 transports=shm
! The address that is detached is that of MPI_BUFFER_AUTOMATIC, or of the buffer that was attached.
program f08_buffers
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: n, rank
    integer(MPI_COUNT_KIND) :: large
    type(c_ptr) :: p
    character, target :: own(1000)
    type(MPI_Session) :: session

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Buffer_detach(p, n)
    call check(c_associated(p, c_loc(MPI_BUFFER_AUTOMATIC)), "automatic")
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Buffer_detach(p, large)
    call check(c_associated(p, c_loc(MPI_BUFFER_AUTOMATIC)), "automatic, large")
    call MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Comm_detach_buffer(MPI_COMM_WORLD, p, large)
    call check(c_associated(p, c_loc(MPI_BUFFER_AUTOMATIC)), "automatic, of a communicator")
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Session_detach_buffer(session, p, n)
    call check(c_associated(p, c_loc(MPI_BUFFER_AUTOMATIC)), "automatic, of a session")
    call MPI_Session_finalize(session)
    call MPI_Buffer_attach(own, size(own))
    call MPI_Buffer_detach(p, n)
    call check(c_associated(p, c_loc(own)) .and. n == size(own), "own")
    call MPI_Finalize()
    if (rank == 0) print '(a)', "ok"
contains
    subroutine check(right, what)
        logical, intent(in) :: right
        character(*), intent(in) :: what
        if (.not. right) then
            print *, "wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program
