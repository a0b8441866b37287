! Statuses, topologies, attributes, error handlers and generalized requests with the
! module mpi_f08.
module callbacks
    use mpi_f08
    implicit none
    integer :: copies = 0, deletes = 0, errors = 0, queries = 0, frees = 0, cancels = 0
contains
    subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
        type(MPI_Comm) :: oldcomm
        integer :: comm_keyval, ierror
        integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
        logical :: flag
        copies = copies + 1
        attribute_val_out = attribute_val_in + extra_state
        flag = oldcomm == MPI_COMM_SELF
        ierror = MPI_SUCCESS
    end subroutine

    subroutine drop(comm, comm_keyval, attribute_val, extra_state, ierror)
        type(MPI_Comm) :: comm
        integer :: comm_keyval, ierror
        integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
        deletes = deletes + 1
        ierror = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra_state == 11)
    end subroutine

    subroutine handler(comm, error_code)
        type(MPI_Comm) :: comm
        integer :: error_code, class
        call MPI_Error_class(error_code, class)
        if (comm == MPI_COMM_SELF .and. class == MPI_ERR_TAG) errors = errors + 1
    end subroutine

    subroutine query(extra_state, status, ierror)
        integer(MPI_ADDRESS_KIND) :: extra_state
        type(MPI_Status) :: status
        integer :: ierror
        queries = queries + 1
        call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
        call MPI_Status_set_cancelled(status, .false.)
        status%MPI_SOURCE = MPI_UNDEFINED
        status%MPI_TAG = 13
        ierror = MPI_SUCCESS
    end subroutine

    subroutine release(extra_state, ierror)
        integer(MPI_ADDRESS_KIND) :: extra_state
        integer :: ierror
        if (extra_state == 5) frees = frees + 1
        extra_state = -1
        ierror = MPI_SUCCESS
    end subroutine

    subroutine cancel(extra_state, complete, ierror)
        integer(MPI_ADDRESS_KIND) :: extra_state
        logical :: complete
        integer :: ierror
        if (.not. complete) cancels = cancels + 1
        ierror = MPI_SUCCESS
    end subroutine
end module

program f08_objects
    use mpi_f08
    use callbacks
    implicit none
    integer :: rank, size, n, key, code, class, dims(2), coords(2), provided, old(MPI_STATUS_SIZE), up, down, i
    integer, allocatable :: sources(:), destinations(:), weights(:), more(:)
    integer(MPI_ADDRESS_KIND) :: value
    integer(MPI_ADDRESS_KIND), volatile :: state ! a call changes what was INTENT(IN) before
    integer(MPI_COUNT_KIND) :: large
    logical :: flag, periods(2), weighted, back(2)
    type(MPI_Status) :: status, same
    type(MPI_Comm) :: comm, graph
    type(MPI_Errhandler) :: onerror, found
    type(MPI_Request) :: request
    type(MPI_Group) :: group, part
    type(MPI_Session) :: session
    character(len=MPI_MAX_PSET_NAME_LEN) :: pset

    call MPI_Initialized(flag)
    call check(.not. flag, "not initialized")
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
    call check(provided >= MPI_THREAD_FUNNELED, "thread level")
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call MPI_Is_thread_main(flag)
    call check(flag, "main thread")

    ! statuses in both forms of Fortran
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 3, n, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, status)
    call check(status%MPI_SOURCE == rank .and. status%MPI_TAG == 3, "fields")
    call MPI_Status_f082f(status, old)
    call check(old(MPI_SOURCE) == rank .and. old(MPI_TAG) == 3, "status as integers")
    old(MPI_TAG) = 4
    call MPI_Status_f2f08(old, same)
    call check(same%MPI_TAG == 4, "status as a type")
    call MPI_Get_count(same, MPI_INTEGER, n)
    call check(n == 1, "count of a copy")
    call MPI_Get_elements(status, MPI_INTEGER, large)
    call check(large == 1, "elements")
    call MPI_Test_cancelled(status, flag)
    call check(.not. flag, "cancelled")
    call MPI_Status_set_tag(status, 17)
    call MPI_Status_get_tag(status, n)
    call check(n == 17 .and. status%MPI_TAG == 17, "tag of a status")

    ! attributes
    call MPI_Comm_create_keyval(copy, drop, key, 11_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, 2_MPI_ADDRESS_KIND**40)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_get_attr(comm, key, value, flag)
    call check(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 11, "attribute")
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
    call check(copies == 1 .and. deletes == 2, "callbacks of attributes")
    call MPI_Comm_free_keyval(key)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, 1_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_get_attr(comm, key, value, flag)
    call check(.not. flag, "attribute that is not copied")
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
    call MPI_Comm_free_keyval(key)

    ! error handlers
    call MPI_Comm_create_errhandler(handler, onerror)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, onerror)
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, found)
    call check(found == onerror, "error handler")
    call MPI_Send(n, 1, MPI_INTEGER, 0, -8, MPI_COMM_SELF, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_TAG .and. errors == 1, "wrong tag")
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    call MPI_Errhandler_free(onerror)
    call check(onerror == MPI_ERRHANDLER_NULL, "freed error handler")

    ! generalized requests
    state = 5
    call MPI_Grequest_start(query, release, cancel, state, request)
    call MPI_Test(request, flag, status)
    call check(.not. flag, "generalized request is not complete")
    call MPI_Cancel(request)
    call check(cancels == 1, "cancel of a generalized request")
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call check(queries == 1 .and. frees == 1, "callbacks of a generalized request")
    call check(state == -1, "extra state that a callback changes")
    call MPI_Get_count(status, MPI_INTEGER, n)
    call check(n == 5 .and. status%MPI_TAG == 13, "status of a generalized request")
    state = 5
    call MPI_Grequest_start(query, release, cancel, state, request)
    state = 77 ! the memory is used for something else
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call check(state == 77, "extra state whose variable is gone")

    ! topologies
    dims = 0
    call MPI_Dims_create(size, 2, dims)
    call check(product(dims) == size, "dims")
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., comm)
    call MPI_Cart_get(comm, 2, dims, periods, coords)
    call check(periods(1) .and. .not. periods(2), "periods")
    call MPI_Cart_rank(comm, coords, n)
    call check(n == rank, "rank at coordinates")
    call MPI_Cart_shift(comm, 0, 1, up, down) ! directions count from zero
    call check(down == mod(rank + dims(2), size) .and. up == mod(rank - dims(2) + size, size), "shift")
    call MPI_Cart_shift(comm, 1, 1, up, down)
    call check((coords(2) == dims(2) - 1) .eqv. (down == MPI_PROC_NULL), "shift over the border")
    back = [.false., .true.]
    call MPI_Cart_sub(comm, back, graph)
    call MPI_Comm_size(graph, n)
    call check(n == dims(2), "cart sub")
    call MPI_Comm_free(graph)
    call MPI_Comm_free(comm)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + size - 1, size)], MPI_UNWEIGHTED, 1, &
                                        [mod(rank + 1, size)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, up, down, weighted)
    call check(up == 1 .and. down == 1 .and. .not. weighted, "unweighted")
    allocate (sources(1), destinations(1), weights(1), more(1))
    call MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED)
    call check(destinations(1) == mod(rank + 1, size), "neighbors")
    call MPI_Neighbor_alltoallw([rank], [1], [0_MPI_ADDRESS_KIND], [MPI_INTEGER], more, [1], [0_MPI_ADDRESS_KIND], &
                                [MPI_INTEGER], graph)
    call check(more(1) == mod(rank + size - 1, size), "neighbor alltoallw")
    call MPI_Comm_free(graph)

    ! groups
    call MPI_Comm_group(MPI_COMM_WORLD, group)
    call MPI_Group_range_incl(group, 1, reshape([size - 1, 0, -1], [3, 1]), part)
    call MPI_Group_translate_ranks(part, 1, [0], group, dims)
    call check(dims(1) == size - 1, "range of ranks")
    call MPI_Group_compare(group, part, n)
    call check(n == merge(MPI_IDENT, MPI_SIMILAR, size == 1), "compared groups")
    call MPI_Group_free(part)
    call MPI_Group_free(group)

    ! sessions
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n)
    call check(n >= 2, "process sets")
    do i = 0, n - 1
        code = 0
        call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, code, pset)
        call check(code > 0, "length of the name of a process set")
        call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, code, pset)
        if (pset == "mpi://WORLD") exit
    end do
    call check(pset == "mpi://WORLD" .and. code == 11, "name of the set of all processes")
    call MPI_Group_from_session_pset(session, pset, group)
    call MPI_Comm_create_from_group(group, "f08_objects  ", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm)
    call MPI_Comm_size(comm, n)
    call check(n == size, "communicator of a session")
    call MPI_Comm_free(comm)
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
    call check(session == MPI_SESSION_NULL, "finished session")

    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Finalize()
    call MPI_Finalized(flag)
    if (rank == 0 .and. flag) print '(A)', "ok"

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
