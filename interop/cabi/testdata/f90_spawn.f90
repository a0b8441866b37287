! cabi: ranks=1,2 transports=shm
! Started programs: arguments as arrays of strings that a blank one ends.
program f90_spawn
    use mpi
    implicit none
    integer :: ierr, rank, size, parent, children, codes(2), i, n, number
    character(len=256) :: self
    character(len=16) :: argument, argv(3), commands_argv(2, 2)
    character(len=256) :: commands(2)
    logical :: started

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    call MPI_Comm_get_parent(parent, ierr)
    started = parent /= MPI_COMM_NULL
    if (started) then
        call child()
    else
        ! blanks within an argument stay, those at its ends go. Off the root nothing is set: no blank string ends the
        ! arguments there.
        if (rank == 0) then
            call get_command_argument(0, self)
            argv = [character(len=16) :: "one", "  two words", " "]
        end if
        codes = -1
        call MPI_Comm_spawn(self, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, ierr)
        call check(ierr == MPI_SUCCESS .and. codes(1) == MPI_SUCCESS .and. codes(2) == MPI_SUCCESS, "spawn")
        call MPI_Comm_remote_size(children, n, ierr)
        call check(n == 2, "started processes")
        call expect([2 * 100 + 3 + 9, 2 * 100 + 3 + 9])
        call MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
        call expect([0])

        ! arguments of command i are in row i
        commands = " " // self
        commands_argv(1, :) = [character(len=16) :: "a", " "]
        commands_argv(2, :) = [character(len=16) :: "four", " "]
        call MPI_Comm_spawn_multiple(2, commands, commands_argv, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, &
                                     MPI_COMM_WORLD, children, codes, ierr)
        call expect([100 + 1, 100 + 4])
    end if
    call MPI_Finalize(ierr)
    if (.not. started .and. rank == 0) print '(A)', "ok"

contains
    ! A child sends 100 for each argument, and the lengths of all.
    subroutine child()
        number = 100 * command_argument_count()
        do i = 1, command_argument_count()
            call get_command_argument(i, argument, n)
            number = number + n
        end do
        call MPI_Send(number, 1, MPI_INTEGER, 0, rank, parent, ierr)
        call MPI_Comm_disconnect(parent, ierr)
    end subroutine

    ! expect receives what each child says and parts from them.
    subroutine expect(want)
        integer, intent(in) :: want(:)
        integer :: got
        if (rank == 0) then
            do i = 1, ubound(want, 1)
                call MPI_Recv(got, 1, MPI_INTEGER, i - 1, MPI_ANY_TAG, children, MPI_STATUS_IGNORE, ierr)
                call check(got == want(i), "arguments of a started process")
            end do
        end if
        call MPI_Comm_disconnect(children, ierr)
        call check(children == MPI_COMM_NULL, "disconnected")
    end subroutine

    subroutine check(yes, what)
        logical, intent(in) :: yes
        character(len=*), intent(in) :: what
        if (.not. yes) then
            print *, rank, "wrong: ", what
            call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
        end if
    end subroutine
end program
