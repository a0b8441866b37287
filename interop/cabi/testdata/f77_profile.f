!     A tool of Fortran: the program's own MPI_SEND takes the place of
!     the library's, and calls PMPI_SEND (MPI-5.0, 15.2).
      program f77_profile
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, value, request
      integer sends
      common /counted/ sends

      sends = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      value = -1
      call PMPI_IRECV(value, 1, MPI_INTEGER, mod(rank+size-1,size), 1,
     &  MPI_COMM_WORLD, request, ierr)
      call MPI_SEND(rank, 1, MPI_INTEGER, mod(rank+1,size), 1,
     &  MPI_COMM_WORLD, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      if (sends .ne. 1 .or. value .ne. mod(rank+size-1,size)) then
        print *, 'wrong: ', sends, value
        call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end if
      call PMPI_BARRIER(MPI_COMM_WORLD, ierr)
      if (PMPI_WTIME() .le. 0d0) call MPI_ABORT(MPI_COMM_WORLD, 2, ierr)
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print '(A)', 'ok'
      end

      subroutine MPI_SEND(buf, count, datatype, dest, tag, comm, ierr)
      implicit none
      integer buf(*), count, datatype, dest, tag, comm, ierr
      integer sends
      common /counted/ sends
      sends = sends + 1
      call PMPI_SEND(buf, count, datatype, dest, tag, comm, ierr)
      end
