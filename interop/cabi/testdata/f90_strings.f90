! Strings: names, messages, and infos, whose blanks at both ends do not count.
program f90_strings
    use mpi
    implicit none
    integer :: ierr, rank, n, info, copy, class, code, again, type, comm
    logical :: flag
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=MPI_MAX_PROCESSOR_NAME) :: host
    character(len=MPI_MAX_ERROR_STRING) :: text
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    character(len=12) :: value
    character(len=4) :: short
    character(len=MPI_MAX_INFO_KEY) :: key

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)

    name = repeat("x", MPI_MAX_OBJECT_NAME)
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, ierr)
    call check(name == "MPI_COMM_WORLD" .and. n == 14, "name of the world")
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_set_name(comm, "a b   ", ierr)
    call MPI_Comm_get_name(comm, name, n, ierr)
    call check(name == "a b" .and. n == 3, "blanks at the end")
    call MPI_Comm_set_name(comm, "", ierr)
    call MPI_Comm_get_name(comm, name, n, ierr)
    call check(name == "" .and. n == 0, "no name")
    call MPI_Comm_free(comm, ierr)
    call MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, n, ierr)
    call check(name == "MPI_DOUBLE_PRECISION", "name of a type")
    call MPI_Type_dup(MPI_REAL, type, ierr)
    call MPI_Type_set_name(type, "coordinate", ierr)
    call MPI_Type_get_name(type, name, n, ierr)
    call check(name == "coordinate" .and. n == 10, "name of a dup")
    call MPI_Type_free(type, ierr)

    call MPI_Get_processor_name(host, n, ierr)
    call check(n > 0 .and. n == len_trim(host), "processor name")
    call MPI_Get_library_version(version, n, ierr)
    call check(n > 0 .and. n == len_trim(version), "library version")
    call MPI_Get_version(n, code, ierr)
    call check(n == MPI_VERSION .and. code == MPI_SUBVERSION, "version")
    call MPI_Abi_get_version(n, code, ierr)
    call check(n == MPI_ABI_VERSION .and. code == MPI_ABI_SUBVERSION, "version of the ABI")

    call MPI_Error_string(MPI_ERR_TRUNCATE, text, n, ierr)
    call check(n > 0 .and. n == len_trim(text), "error string")
    call MPI_Add_error_class(class, ierr)
    call MPI_Add_error_code(class, code, ierr)
    call MPI_Add_error_string(code, "of the program  ", ierr)
    call MPI_Error_string(code, text, n, ierr)
    call check(text == "of the program" .and. n == 14, "added error string")
    call MPI_Error_class(code, again, ierr)
    call check(again == class, "added class")

    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, "  key  ", "  some value  ", ierr)
    call MPI_Info_get_valuelen(info, "key", n, flag, ierr)
    call check(flag .and. n == 10, "length of a value")
    value = repeat("x", 12)
    call MPI_Info_get(info, " key", 12, value, flag, ierr)
    call check(flag .and. value == "some value", "value")
    call MPI_Info_get(info, "key", 4, short, flag, ierr)
    call check(flag .and. short == "some", "part of a value")
    flag = .true.
    call MPI_Info_get(info, "other", 12, value, flag, ierr)
    call check(.not. flag .and. value == "some value", "no value")
    n = 0
    call MPI_Info_get_string(info, "key", n, value, flag, ierr)
    call check(flag .and. n == 10, "length of a string")
    value = repeat("x", 12)
    call MPI_Info_get_string(info, "key", n, value, flag, ierr)
    call check(flag .and. n == 10 .and. value == "some value", "string")
    n = 4
    call MPI_Info_get_string(info, "key", n, short, flag, ierr)
    call check(flag .and. n == 10 .and. short == "some", "part of a string")
    call MPI_Info_set(info, "second", "2", ierr)
    call MPI_Info_get_nkeys(info, n, ierr)
    call check(n == 2, "keys")
    call MPI_Info_get_nthkey(info, 1, key, ierr) ! counts from zero
    call check(key == "second" .or. key == "key", "nth key")
    call MPI_Info_dup(info, copy, ierr)
    call MPI_Info_delete(info, "second", ierr)
    call MPI_Info_get_nkeys(info, n, ierr)
    call check(n == 1, "deleted key")
    call MPI_Info_get(copy, "second", 12, value, flag, ierr)
    call check(flag .and. value == "2", "copy")
    call MPI_Info_free(info, ierr)
    call MPI_Info_free(copy, ierr)
    call check(info == MPI_INFO_NULL, "freed info")

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
