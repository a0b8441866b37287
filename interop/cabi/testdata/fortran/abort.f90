! Ends by MPI_Abort with status 3, with data in a unit and in a statement that is not
! complete: what the program has written before must be in its files.
program abort
    use mpi_f08
    implicit none
    integer :: value
    character(len=400) :: name
    call get_command_argument(1, name)
    call MPI_Init()
    open (10, file=name)
    write (10, '(A)') "in a unit"
    write (*, '(A)') "on the screen"
    if (command_argument_count() == 1) then
        call MPI_Abort(MPI_COMM_WORLD, 3)
    else ! the unit is in use by the statement that aborts
        write (*, *) last()
    end if
contains
    integer function last()
        value = 1
        call MPI_Send(value, -1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD) ! fatal
        last = value
    end function
end program
