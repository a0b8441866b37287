! cabi: ranks=1,2 transports=shm
! One program of two languages: what Fortran sets C gets, and the other way round
! (MPI-5.0, 19.3). C functions are called through their binding.
module c_functions
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        integer(c_int) function c_set_attr(comm, keyval, value) bind(C, name="MPI_Comm_set_attr")
            import
            integer(c_intptr_t), value :: comm
            integer(c_int), value :: keyval
            type(c_ptr), value :: value
        end function
        integer(c_int) function c_get_attr(comm, keyval, value, flag) bind(C, name="MPI_Comm_get_attr")
            import
            integer(c_intptr_t), value :: comm
            integer(c_int), value :: keyval
            type(c_ptr) :: value
            integer(c_int) :: flag
        end function
        integer(c_int) function c_create_keyval(copy_fn, delete_fn, keyval, extra) bind(C, name="MPI_Comm_create_keyval")
            import
            integer(c_intptr_t), value :: copy_fn, delete_fn
            integer(c_int) :: keyval
            type(c_ptr), value :: extra
        end function
        integer(c_intptr_t) function c_comm_f2c(comm) bind(C, name="MPI_Comm_f2c")
            import
            integer(c_int), value :: comm
        end function
        integer(c_int) function c_comm_c2f(comm) bind(C, name="MPI_Comm_c2f")
            import
            integer(c_intptr_t), value :: comm
        end function
        integer(c_int) function c_status_f2c(f, c) bind(C, name="MPI_Status_f2c")
            import
            integer(c_int) :: f(*)
            type(MPI_Status) :: c
        end function
        integer(c_int) function c_send(buf, count, datatype, dest, tag, comm) bind(C, name="MPI_Send")
            import
            type(c_ptr), value :: buf
            integer(c_int), value :: count, dest, tag
            integer(c_intptr_t), value :: datatype, comm
        end function
    end interface
end module

program f08_mixed
    use mpi_f08
    use c_functions
    implicit none
    integer :: rank, key, ckey, i, old(MPI_STATUS_SIZE)
    integer, asynchronous :: n
    integer, target :: cell = 4711
    integer(c_int) :: flag
    integer(c_intptr_t) :: world, own
    integer(MPI_ADDRESS_KIND) :: value, address
    integer(MPI_ADDRESS_KIND), pointer :: kept
    integer, pointer :: seen
    logical :: found
    type(c_ptr) :: p
    type(MPI_Comm) :: comm, copy
    type(MPI_Status) :: status
    type(MPI_Request) :: request

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)

    ! handles
    world = c_comm_f2c(MPI_COMM_WORLD%MPI_VAL)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    own = c_comm_f2c(comm%MPI_VAL)
    call check(c_comm_c2f(own) == comm%MPI_VAL .and. c_comm_c2f(world) == MPI_COMM_WORLD%MPI_VAL, "handles")

    ! messages and statuses
    call MPI_Irecv(n, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, request)
    call check(c_send(c_loc(cell), 1, int(MPI_INTEGER%MPI_VAL, c_intptr_t), rank, 3, world) == 0, "send of C")
    call MPI_Wait(request, status)
    call check(n == 4711 .and. status%MPI_TAG == 3, "receive of Fortran")
    call MPI_Status_f082f(status, old)
    old(MPI_TAG) = 5
    call check(c_status_f2c(old, status) == 0 .and. status%MPI_TAG == 5 .and. status%MPI_SOURCE == rank, "status")

    ! an attribute of Fortran is an integer, of which C gets the address
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(comm, key, 2_MPI_ADDRESS_KIND**33)
    call check(c_get_attr(own, key, p, flag) == 0 .and. flag == 1, "attribute in C")
    call c_f_pointer(p, kept)
    call check(kept == 2_MPI_ADDRESS_KIND**33, "value in C")

    ! one of C is a pointer, which Fortran gets as an integer
    call check(c_set_attr(own, key, c_loc(cell)) == 0, "set by C")
    call MPI_Comm_get_attr(comm, key, value, found)
    call MPI_Get_address(cell, address)
    call check(found .and. value == address, "attribute in Fortran")
    call MPI_Comm_dup(comm, copy)
    call check(c_get_attr(c_comm_f2c(copy%MPI_VAL), key, p, flag) == 0 .and. flag == 1, "copied attribute of C")
    call check(c_associated(p, c_loc(cell)), "a copied pointer stays one")
    call MPI_Comm_free(copy)
    call MPI_Comm_delete_attr(comm, key)

    ! the library's are an address in C, and their value in Fortran
    call check(c_get_attr(world, MPI_TAG_UB, p, flag) == 0 .and. flag == 1, "tag ub in C")
    call c_f_pointer(p, seen)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found)
    call check(found .and. value == seen, "tag ub in both")

    ! a key of C with the values 1 and 0 for its callbacks: copy, and do nothing
    call check(c_create_keyval(1_c_intptr_t, 0_c_intptr_t, ckey, c_null_ptr) == 0, "key of C")
    call MPI_Comm_set_attr(comm, ckey, -9_MPI_ADDRESS_KIND)
    call MPI_Comm_get_attr(comm, ckey, value, found)
    call check(found .and. value == -9, "attribute of Fortran with a key of C")
    call MPI_Comm_delete_attr(comm, ckey)

    ! many attributes, each of which replaces one
    do i = 1, 20000
        call MPI_Comm_set_attr(comm, key, int(i, MPI_ADDRESS_KIND))
    end do
    call MPI_Comm_get_attr(comm, key, value, found)
    call check(found .and. value == 20000, "the last of many")
    call MPI_Comm_free(comm)
    call MPI_Comm_free_keyval(key)
    call MPI_Comm_free_keyval(ckey)

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
